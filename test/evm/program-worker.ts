/** A thread that holds both engines against each other over ranges of seeds. */
import { isDeepStrictEqual } from "node:util";
import { parentPort } from "node:worker_threads";
import { present } from "../../chain/errors.js";
import { codesOf, ENGINES, outcomeOf } from "../unit/execution/program-runs.js";
import { sequenceOf, sequenceOutcomes } from "../unit/execution/sequence-runs.js";

/** Seeds to run: `from` and those behind it. */
export interface SeedRange {
  readonly from: number;
  readonly count: number;
}

/** Seeds whose outcomes differ. */
export interface RangeResult {
  readonly differing: readonly number[];
}

const port = present(parentPort ?? undefined, "the thread that started this one");
port.on("message", (range: SeedRange) => {
  void run(range);
});

async function run({ from, count }: SeedRange): Promise<void> {
  const differing: number[] = [];
  for (let seed = from; seed < from + count; seed++) {
    const codes = codesOf(seed);
    // Only our own engine counts compute units.
    const { compute: _own, ...own } = await outcomeOf(codes, ENGINES.own);
    const { compute: _none, ...library } = await outcomeOf(codes, ENGINES.library);
    const sequence = sequenceOf(seed);
    const ownSequence = await sequenceOutcomes(sequence, ENGINES.own);
    const librarySequence = await sequenceOutcomes(sequence, ENGINES.library);
    const isSame =
      isDeepStrictEqual(own, library) && isDeepStrictEqual(ownSequence, librarySequence);
    if (!isSame) differing.push(seed);
  }
  const result: RangeResult = { differing };
  port.postMessage(result, []);
}
