/** What the workloads ask: about a document that comes before, or about a subject. */

const PROSE = {
  tasks: [
    "What does the text say about %? Answer in a few sentences, and quote the words that matter most.",
    "Explain to somebody who has not read the text what part % plays in it and why.",
    "How does the narrator feel about %? Give two reasons, each with its place in the text.",
  ],
  subjects: [
    "the sea",
    "Queequeg",
    "the Spouter-Inn",
    "New Bedford",
    "the landlord",
    "the whale",
    "the painting in the entry",
    "going as a passenger",
  ],
};

const CODE = {
  tasks: [
    "Which function deals with %, and what does it do at the end of the text? Name the code.",
    "Write a unit test in TypeScript for the code that deals with %. Use Deno.test.",
    "Review the code that deals with %: name one weakness, and rewrite the lines it is in.",
  ],
  subjects: [
    "strings",
    "numbers",
    "identifiers",
    "comments",
    "template literals",
    "white space",
    "line breaks",
    "invalid characters",
  ],
};

/** Every subject with every task, subjects taking turns. */
function questions({ tasks, subjects }: typeof PROSE): readonly string[] {
  return tasks.flatMap((task) => subjects.map((subject) => task.replace("%", subject)));
}

/** About the first chapters of Moby Dick. */
export const PROSE_QUESTIONS = questions(PROSE);

/** About the scanner of a compiler. */
export const CODE_QUESTIONS = questions(CODE);
