/**
 * Pure: what a treasury remembers of sweeps between its rounds. Late ones that a round does not look at look
 * like those that ended: both are remembered for a while.
 */

/** Sweeps that are remembered beside those of the last round, of each thing that is. */
const MAX_OTHERS = 10_000;

/** What is kept of what is known of sweeps, by id: of those of this round all, of others the last ones. */
export function remembered<T>(
  known: ReadonlyMap<number, T>,
  ofRound: ReadonlySet<number>,
): Map<number, T> {
  const others = [...known].filter(([id]) => !ofRound.has(id));
  const own = [...known].filter(([id]) => ofRound.has(id));
  return new Map([...others.slice(-MAX_OTHERS), ...own]);
}
