/**
 * Order of the test files: those that start whole kits first, then other processes and databases,
 * units last. Without figures of an earlier run jest goes by file size, and a fresh clone would end
 * with one long file while the other core has nothing to do.
 */
import { statSync } from "node:fs";
import TestSequencerModule from "@jest/test-sequencer";

const Sequencer = TestSequencerModule.default ?? TestSequencerModule;

/** Folders by how long their files take; what is not named comes before the units. */
const FOLDERS = [
  /[/\\]test[/\\]e2e[/\\]/,
  /[/\\]test[/\\]integration[/\\](sidecar|cli|statesync|consensus)[/\\]/,
  /[/\\]test[/\\]integration[/\\]/,
  /[/\\]test[/\\](?!unit|architecture)/,
];

const rankOf = (path) => {
  const rank = FOLDERS.findIndex((folder) => folder.test(path));
  return rank < 0 ? FOLDERS.length : rank;
};

export default class LongestFirst extends Sequencer {
  /** By rank, the larger file first within one. */
  sort(tests) {
    const sizes = new Map(tests.map(({ path }) => [path, statSync(path).size]));
    return tests.toSorted(
      (left, right) =>
        rankOf(left.path) - rankOf(right.path) || sizes.get(right.path) - sizes.get(left.path),
    );
  }
}
