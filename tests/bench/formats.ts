/** Files of the model in other tensor formats, made by llama.cpp's own tool as rows ask for them. */
import { join } from "node:path";
import { runLlamaTool } from "./peers/llama_cpp.ts";

/** As `llama-quantize` names them. */
export type TensorFormat = "q4_0" | "q8_0" | "q4_k_m";

/**
 * @param folder Where the files go.
 * @returns The path of the model in a format: the same one for each call.
 */
export function converter(
  model: string,
  folder: string,
): (format: TensorFormat) => Promise<string> {
  const made = new Map<TensorFormat, Promise<string>>();
  const convert = async (format: TensorFormat) => {
    const target = join(folder, `${format}.gguf`);
    await runLlamaTool("llama-quantize", ["--allow-requantize", model, target, format]);
    return target;
  };
  return (format) => {
    const path = made.get(format) ?? convert(format);
    made.set(format, path);
    return path;
  };
}
