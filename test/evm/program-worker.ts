/** A thread that holds both engines against each other over ranges of seeds. */
import { isDeepStrictEqual } from "node:util";
import { parentPort } from "node:worker_threads";
import { present } from "../../chain/errors.js";
import {
  codesOf,
  ENGINES,
  oneLibraryMachine,
  outcomeOf,
} from "../unit/execution/engines/program-runs.js";
import { sequenceOf, sequenceOutcomes } from "../unit/execution/engines/sequence-runs.js";
import type { RangeResult, SeedRange } from "./programs.js";

const port = present(parentPort ?? undefined, "the thread that started this one");
port.on("message", (range: SeedRange) => {
  void run(range);
});

const library = oneLibraryMachine();

async function run({ from, count, kind }: SeedRange): Promise<void> {
  const differing: number[] = [];
  for (let seed = from; seed < from + count; seed++) {
    const isSame =
      (kind === "sequence" || (await isProgramSame(seed))) &&
      (kind === "program" || (await isSequenceSame(seed)));
    if (!isSame) differing.push(seed);
  }
  const result: RangeResult = { differing };
  port.postMessage(result, []);
}

async function isProgramSame(seed: number): Promise<boolean> {
  const codes = codesOf(seed);
  // Only our own engine counts compute units.
  const { compute: _own, ...own } = await outcomeOf(codes, ENGINES.own);
  const { compute: _none, ...other } = await outcomeOf(codes, library);
  return isDeepStrictEqual(own, other);
}

async function isSequenceSame(seed: number): Promise<boolean> {
  const sequence = sequenceOf(seed);
  const own = await sequenceOutcomes(sequence, ENGINES.own);
  return isDeepStrictEqual(own, await sequenceOutcomes(sequence, library));
}
