/** Several event streams as one, in order of arrival. */

/**
 * Reads at most one event ahead of each source and none beyond what the caller takes, so a caller
 * that pauses pauses them all. The first error ends the merge; leaving it early closes every
 * source without waiting for it.
 */
export async function* merge<T>(
  sources: readonly AsyncIterable<T>[],
): AsyncGenerator<readonly [index: number, value: T], void, void> {
  type Arrival = { readonly index: number; readonly result: Promise<IteratorResult<T>> };
  const iterators = sources.map((source) => source[Symbol.asyncIterator]());
  const arrivals: Arrival[] = [];
  let wake = () => {};

  const advance = (index: number) => {
    const result = iterators[index]?.next();
    if (result === undefined) return;
    const arrive = () => {
      arrivals.push({ index, result });
      wake();
    };
    result.then(arrive, arrive);
  };

  let open = iterators.length;
  for (let index = 0; index < open; index++) advance(index);
  try {
    while (open > 0) {
      const arrival = arrivals.shift();
      if (arrival === undefined) {
        await new Promise<void>((resolve) => wake = resolve);
        continue;
      }
      const result = await arrival.result;
      if (result.done) {
        open--;
      } else {
        yield [arrival.index, result.value];
        advance(arrival.index);
      }
    }
  } finally {
    for (const iterator of iterators) iterator.return?.().catch(() => {});
  }
}
