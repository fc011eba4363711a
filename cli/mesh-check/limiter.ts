/** Lets only so many pieces of work run at once; the others wait in order. */

/** Runs the work when there is room for it. */
export type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

/** Makes a limiter. Callers bound how much they hand in: what waits is kept in memory. */
export function createLimiter(concurrency: number): Limiter {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= concurrency) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // The place goes straight to the next in line, so nobody can overtake it.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
