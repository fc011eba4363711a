/**
 * Rounds of random faults over real processes, each judged: `npm run test:soak`. Several exchanges
 * share a chain, and those of the last lane have one of their own, which may come back older; each
 * lives for some rounds, so that what is judged stays small.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { inspect } from "node:util";
import { pause } from "../helpers/faults/bench.js";
import { prove } from "../helpers/faults/lab/judge.js";
import { LabChain } from "../helpers/faults/lab/lab-chain.js";
import { type Backend, LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import { BELOW_FUNDS, LabTreasury } from "../helpers/faults/lab/lab-treasury.js";
import { redisProgram } from "../helpers/faults/lab/own-redis.js";
import { addTallies, EMPTY_TALLY, type Tally, tallyPayouts } from "../helpers/faults/tally.js";
import { kitOffset } from "../helpers/kit.js";
import { CHAIN_LOSS, LEDGER_LOSSES, type Strike, STRIKES, unsettle } from "./strikes.js";

const rounds = Number(process.env["CAUSEWAY_SOAK_ROUNDS"] ?? 3);
const seed = Number(process.env["CAUSEWAY_SOAK_SEED"] ?? 1);
const atOnce = Math.min(Number(process.env["CAUSEWAY_SOAK_AT_ONCE"] ?? 3), rounds);

/** Rounds of one exchange: the judge reads everything since its first block each time. */
const ROUNDS_PER_EXCHANGE = 20;

/** In one of so many rounds the database comes back from an older copy, or something like it. */
const ROUNDS_PER_RESTORE = Number(process.env["CAUSEWAY_SOAK_ROUNDS_PER_RESTORE"] ?? 10);

/** In one of so many rounds of the last lane the chain comes back from an older copy. */
const ROUNDS_PER_OLDER_CHAIN = Number(process.env["CAUSEWAY_SOAK_ROUNDS_PER_OLDER_CHAIN"] ?? 5);

/** Names of strikes, to run no others; empty for all. */
const only = (process.env["CAUSEWAY_SOAK_ONLY"] ?? "").split(",").filter(Boolean);
const named = new Set([...STRIKES, ...LEDGER_LOSSES, CHAIN_LOSS].map(({ name }) => name));

const MAX_STRIKES = 3;

/** Of a failure, with all that it followed from. */
const MAX_TOLD_CHARACTERS = 12_000;
const MAX_GAP_MS = 500;

/** Time for all rounds; only tells a run that hangs from one that ends. */
const TIMEOUT_MS = 600_000 + rounds * 60_000;

const say = (line: string): void => void process.stderr.write(`${line}\n`);

let shared: LabChain | undefined;
let nextRound = 1;
let totals: Tally = EMPTY_TALLY;
const failures: string[] = [];

beforeAll(async () => {
  if (atOnce > 1) shared = await LabChain.open({ portOffset: kitOffset(1), hasToken: true });
});
afterAll(() => shared?.close());

describe("rounds of random faults", () => {
  it(
    "lose and double nothing",
    async () => {
      // With a name of nothing no round would be struck, and all would pass.
      expect(only.filter((name) => !named.has(name))).toEqual([]);
      say(`soak: ${rounds} rounds, seed ${seed}, ${atOnce} exchanges at a time`);
      if (redisProgram() === undefined) {
        say("soak: there is no redis-server on this machine: all queues are in PostgreSQL");
      }
      await Promise.all(Array.from({ length: atOnce }, (_, lane) => runLane(lane)));
      const { paidOnce, doubled, missing, stuck, refused } = totals;
      say(
        `soak: ${nextRound - 1} rounds, seed ${seed}: paid once ${paidOnce}, doubled ${doubled}, ` +
          `missing ${missing}, stuck ${stuck}, refused as they had to ${refused}; ` +
          `${failures.length} rounds failed`,
      );
      expect(failures).toEqual([]);
      expect({ doubled, missing, stuck }).toEqual({ doubled: 0, missing: 0, stuck: 0 });
    },
    TIMEOUT_MS,
  );
});

/** Exchange after exchange until all rounds are given out; a failed round ends its exchange. */
async function runLane(lane: number): Promise<void> {
  for (let life = 0; nextRound <= rounds; life += 1) {
    const isOnRedis = (lane + life) % 2 === 1 && redisProgram() !== undefined;
    const backend: Backend = isOnRedis ? "redis" : "postgres";
    const hasTreasury = (lane + life) % 3 !== 1;
    const own = (seed + lane * 1_000_003 + life * 7_919) >>> 0;
    const ownChain = lane === atOnce - 1 ? await openOwnChain() : undefined;
    const chain = ownChain ?? shared;
    if (chain === undefined) throw new Error("no chain is shared");
    const lab = await LabExchange.open({
      chain,
      backend,
      seed: own,
      hasOwnPostgres: true,
      hasToken: true,
      hasTreasury,
    });
    const treasury = hasTreasury ? new LabTreasury(lab) : undefined;
    let before: Tally = EMPTY_TALLY;
    try {
      treasury?.allow(BELOW_FUNDS);
      for (let count = 0; count < ROUNDS_PER_EXCHANGE && nextRound <= rounds; count += 1) {
        const round = nextRound;
        nextRound += 1;
        const strikes = chooseStrikes(lab, ownChain !== undefined);
        before = await runRound({ lab, treasury }, { round, ...strikes }, before);
      }
    } catch (error) {
      failures.push(String(error));
      const told = inspect(error).slice(0, MAX_TOLD_CHARACTERS);
      say(`FAILED (exchange seed ${own} on ${backend}): ${told}`);
    } finally {
      totals = addTallies(totals, before);
      await lab.close();
      await ownChain?.close();
    }
  }
}

/** One at a time, beside the one that is shared. */
function openOwnChain(): Promise<LabChain> {
  return LabChain.open({ portOffset: kitOffset(2), hasToken: true });
}

/** What a round does: one loss, which is begun with nothing under way, or some strikes. */
interface Choice {
  readonly strikes: readonly Strike[];
  readonly isLoss: boolean;
}

function chooseStrikes({ random, redis, options }: LabExchange, hasOwnChain: boolean): Choice {
  const isWanted = ({ name, isOfRedis, isOfTreasury }: Strike) =>
    (only.length === 0 || only.includes(name)) &&
    (isOfRedis !== true || redis !== undefined) &&
    (isOfTreasury !== true || options.hasTreasury === true);
  const losses = LEDGER_LOSSES.filter(isWanted);
  const possible = STRIKES.filter(isWanted);
  const isOlderChain = random.integer(ROUNDS_PER_OLDER_CHAIN) === 0 || possible.length === 0;
  if (hasOwnChain && isOlderChain && isWanted(CHAIN_LOSS)) {
    return { strikes: [CHAIN_LOSS], isLoss: true };
  }
  const isLoss = random.integer(ROUNDS_PER_RESTORE) === 0 || possible.length === 0;
  if (isLoss && losses.length > 0) return { strikes: [random.pick(losses)], isLoss: true };
  const count = possible.length === 0 ? 0 : 1 + random.integer(MAX_STRIKES);
  const strikes = Array.from({ length: count }, () => random.pick(possible));
  return { strikes, isLoss: false };
}

/** The treasury first: until it has swept all, sums move between chain and books. */
async function proveWith(lab: LabExchange, treasury: LabTreasury | undefined): Promise<void> {
  if (treasury !== undefined) {
    await lab.heal();
    await treasury.leaseEnds();
    await treasury.prove();
  }
  await prove(lab);
}

/** One round. @returns the tally of its exchange so far */
async function runRound(
  { lab, treasury }: { readonly lab: LabExchange; readonly treasury: LabTreasury | undefined },
  { round, strikes, isLoss }: Choice & { readonly round: number },
  before: Tally,
): Promise<Tally> {
  const { random, customers } = lab;
  unsettle(lab);
  const working = lab.work(1 + random.integer(2));
  working.catch(() => undefined);
  if (isLoss) await working;
  for (const strike of strikes) {
    await pause(random.integer(MAX_GAP_MS));
    await strike.run(lab);
  }
  await working;
  const fault = await proveWith(lab, treasury).then(
    () => undefined,
    (error: unknown) => error,
  );
  const head = await customers.chain.height();
  const tally = await tallyPayouts(customers, await customers.chain.blocks(lab.startHeight, head));
  const names = strikes.map(({ name }) => name).join(", ");
  say(
    `round ${round} seed ${lab.options.seed} ${lab.options.backend}` +
      `${treasury === undefined ? "" : " treasury"}: paid once ` +
      `${tally.paidOnce - before.paidOnce}, doubled ${tally.doubled - before.doubled}, missing ` +
      `${tally.missing - before.missing}, stuck ${tally.stuck - before.stuck} (${names})`,
  );
  if (fault !== undefined) throw new Error(`round ${round} (${names})`, { cause: fault });
  return tally;
}
