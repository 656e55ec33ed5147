/** The import graph of the project, as the TypeScript parser sees it: types, re-exports and all. */
import ts from "typescript";

/** An import statement, `import type`, `export … from` or `import("…")`. */
export interface Import {
  /** Path of the importing file, from the project's root. */
  readonly from: string;
  /** Path of the imported file from the root, or the bare specifier of a package. */
  readonly to: string;
  readonly internal: boolean;
  /** 1-based. */
  readonly line: number;
}

/** The imports of one source text. Dynamic imports count where their specifier is a literal. */
export function importsOf(path: string, text: string): Import[] {
  return ts.preProcessFile(text, true, true).importedFiles.map(({ fileName, pos }) => {
    const internal = fileName.startsWith(".");
    const to = internal ? new URL(fileName, `file:///${path}`).pathname.slice(1) : fileName;
    return { from: path, to, internal, line: text.slice(0, pos).split("\n").length };
  });
}

/** Whether the code (not a comment, not a string) says one of these names. */
export function usesName(text: string, names: readonly string[]): boolean {
  const visit = (node: ts.Node): boolean =>
    (ts.isIdentifier(node) && names.includes(node.text)) || ts.forEachChild(node, visit) === true;
  return visit(ts.createSourceFile("source.ts", text, ts.ScriptTarget.Latest));
}

/** Every import cycle, as the list of files that it runs through. One a strongly connected set. */
export function importCycles(imports: readonly Import[]): string[][] {
  const targets = new Map<string, string[]>();
  for (const { from, to, internal } of imports) {
    if (internal) targets.set(from, [...targets.get(from) ?? [], to]);
  }
  const done = new Set<string>();
  const cycles: string[][] = [];
  const visit = (file: string, path: readonly string[]) => {
    const start = path.indexOf(file);
    if (start >= 0) cycles.push([...path.slice(start), file]);
    if (start >= 0 || done.has(file)) return;
    for (const target of targets.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of targets.keys()) visit(file, []);
  return cycles;
}
