import { assertEquals } from "@std/assert";
import { Turns } from "./turns.ts";

Deno.test("Turns go round, whoever asks first, and skip who has left", async () => {
  const turns = new Turns(3);
  const taken: number[] = [];
  const play = async (player: number, rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      await turns.take(player);
      taken.push(player);
    }
    turns.leave(player);
  };
  await Promise.all([play(2, 2), play(0, 3), play(1, 1)]);
  assertEquals(taken, [0, 1, 2, 0, 2, 0]);
});
