/** Time as a dependency: everything that needs it takes a `Clock`, so tests can drive it. */

/** Source of time. */
export interface Clock {
  /** Wall clock, milliseconds since 1970-01-01 UTC; may jump when the machine's clock is set. */
  nowMs(): number;
  /** Milliseconds of a clock that never goes back; only differences have a meaning. */
  monotonicMs(): number;
}

/** The machine's own clocks. */
export const systemClock: Clock = Object.freeze({
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
});
