/**
 * Short instructions for recording generations: kinds of task times topics, so that the lengths of the
 * answers run from one token to the limit, as in a chat service.
 */

const TOPICS = [
  "the moon",
  "bread",
  "the French Revolution",
  "bicycles",
  "photosynthesis",
  "a lost dog",
  "prime numbers",
  "coffee",
  "volcanoes",
  "an old lighthouse",
  "electricity",
  "the Roman Empire",
  "whales",
  "a city in the rain",
  "vaccines",
  "chess",
  "the Sahara",
  "music",
  "a brave teacher",
  "steam engines",
] as const;

const TASKS = [
  "Name one thing that people associate with %. Answer with a single word.",
  "Is it true that % can be dangerous? Answer yes or no.",
  "Describe % in one sentence.",
  "Give a title for a book about %.",
  "List three facts about %.",
  "Explain % to a child.",
  "Write a haiku about %.",
  "Write a short story about %.",
  "Write an email to a friend about %.",
  "What are the advantages and disadvantages of %? Give a detailed answer.",
  "Write a JavaScript function that prints a poem about %.",
  "Plan a lesson about % for a school class, step by step.",
] as const;

/** Every task with every topic, tasks taking turns. */
export const INSTRUCTIONS: readonly string[] = TOPICS.flatMap((topic) =>
  TASKS.map((task) => task.replace("%", topic))
);
