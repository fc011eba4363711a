/** `mesh-check`: what check:data of rosetta-cli does, and what it misses, for users' CI. */
import { randomInt } from "node:crypto";
import { setMaxListeners } from "node:events";
import { readObject } from "../../rpc-client/answer-fields.js";
import type { Clock } from "../../runtime/process/clock.js";
import { sentenceOf } from "../errors.js";
import { progressLines } from "../progress.js";
import { parseBlockId } from "./block-check.js";
import { MeshCheckError } from "./errors.js";
import { FaultList } from "./faults.js";
import { connectMesh, type MeshClient } from "./mesh-client.js";
import { createNodeWitness } from "./node-witness.js";
import { parseOptions } from "./options-check.js";
import { formatReport, toJsonReport } from "./report.js";
import { DEFAULT_URL, type MeshCheckOptions } from "./words.js";
import { createSeededRandom } from "./seeded-random.js";
import { walk, type WalkProgress } from "./walk.js";

/** What the entry gives. */
export interface MeshCheckContext {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  /** Progress and faults of the command itself; kept apart from the result. */
  readonly printProgress: (line: string) => void;
}

/** Exit codes: every balance is explained, a fault was found, the check could not be made. */
export const MESH_CHECK_EXIT = { clean: 0, faults: 1, cannotRun: 2 } as const;

const MAX_CONCURRENCY = 256;

/** The command knows no settings: its flags name whom it asks. */
const SILENT_REMEDY =
  "Start what should answer there, or name another address: --url is a Data API, --node the JSON-RPC " +
  "of its node.";

/** Largest seed of the generator. */
const MAX_SEED = 2 ** 32 - 1;

/** Runs the check and returns its exit code; whatever hinders it is said and gives 2. */
export async function runMeshCheck(
  options: MeshCheckOptions,
  context: MeshCheckContext,
): Promise<number> {
  try {
    return await check(options, context);
  } catch (error) {
    context.printProgress(`mesh-check: ${sentenceOf(error, SILENT_REMEDY)}`);
    return MESH_CHECK_EXIT.cannotRun;
  }
}

async function check(options: MeshCheckOptions, context: MeshCheckContext): Promise<number> {
  const { clock } = context;
  const startedMs = clock.monotonicMs();
  const concurrency = readNumber("--concurrency", options.concurrency, MAX_CONCURRENCY);
  if (concurrency === 0) throw badOption("--concurrency", options.concurrency);
  const seed =
    options.seed === undefined ? randomInt(MAX_SEED) : readNumber("--seed", options.seed, MAX_SEED);
  const from = readNumber("--from", options.from, Number.MAX_SAFE_INTEGER);
  const url = readUrl("--url", options.url ?? DEFAULT_URL);
  const nodeUrl = options.node === undefined ? undefined : readUrl("--node", options.node);
  // A walk that ends early leaves requests behind; they end with it.
  const ending = new AbortController();
  const signal = AbortSignal.any([context.signal, ending.signal]);
  // Each request under way listens; how many there are is bounded by the concurrency.
  setMaxListeners(0, signal);
  const client = await connectMesh({ url, concurrency, signal });
  const witness =
    nodeUrl === undefined ? undefined : createNodeWitness({ url: nodeUrl, concurrency, signal });
  try {
    const faults = new FaultList();
    const allowed = parseOptions(await client.options(), faults);
    const to = await lastBlock(client, options.to);
    if (from > to) {
      throw new MeshCheckError("BAD_RANGE", `There is nothing to check from ${from} to ${to}.`);
    }
    const random = createSeededRandom(seed);
    const onProgress = progressPrinter(context);
    const work = { client, witness, allowed, faults, from, to, random, onProgress, signal };
    const report = await walk(work);
    const durationMs = clock.monotonicMs() - startedMs;
    const about = { url, nodeUrl, seed, durationMs };
    if (options.json === true) context.print(toJsonReport(report, about));
    else for (const line of formatReport(report, about)) context.print(line);
    return report.faults.length === 0 ? MESH_CHECK_EXIT.clean : MESH_CHECK_EXIT.faults;
  } finally {
    ending.abort();
    client.close();
    witness?.close();
  }
}

async function lastBlock(client: MeshClient, text: string): Promise<number> {
  const status = readObject(await client.status(), "status");
  const tip = parseBlockId(status["current_block_identifier"], "current_block_identifier").index;
  if (text === "tip") return tip;
  const wanted = readNumber("--to", text, Number.MAX_SAFE_INTEGER);
  if (wanted <= tip) return wanted;
  throw new MeshCheckError(
    "BAD_RANGE",
    `The tip is block ${tip}; there is no block ${wanted} yet.`,
  );
}

/** Says where the walk is. */
function progressPrinter(context: MeshCheckContext): (progress: WalkProgress) => void {
  const say = progressLines(context.printProgress, context.clock);
  return ({ index, to, balanceCount, faultCount }) =>
    say(
      () => `mesh-check: block ${index} of ${to}, ${balanceCount} balances, ${faultCount} faults`,
    );
}

function readNumber(name: string, text: string, max: number): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(value) || value > max) throw badOption(name, text);
  return value;
}

function readUrl(name: string, text: string): string {
  const isHttp = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (!isHttp) throw badOption(name, text);
  return text;
}

function badOption(name: string, text: string): MeshCheckError {
  return new MeshCheckError("BAD_OPTION", `${name} does not take "${text}"; see --help.`);
}
