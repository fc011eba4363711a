/**
 * Random transactions one behind another on the same state: contracts that are made, called, destroyed
 * and made again, by each other and by transactions, with what lasts longer than a message and what
 * must not (transient storage, warm slots, refunds, accounts of which nothing is left).
 */
import type { Address } from "../../../../chain/address.js";
import { contractAddressOf } from "../../../../chain/evm/contract-address.js";
import { bigintToWord, bytesToHash32, hexToBytes } from "../../../../chain/hex.js";
import { destroy } from "../../../../node/execution/transaction-executor.js";
import type { TransactionEngine } from "../../../../node/execution/transaction-engine.js";
import { BalanceRecorder } from "../../../../node/state/balance-recorder.js";
import { JournaledState } from "../../../../node/state/journaled-state.js";
import {
  ALICE,
  BOB,
  callCode,
  COINBASE,
  CONTRACT,
  MemoryState,
  OTHER,
  push,
  TEN,
} from "../call-fixture.js";
import { BLOCK, leftBehind } from "./program-runs.js";
import { randomOf, THIRD } from "./random-programs.js";

type Random = (below: number) => number;

/** Where the first contracts of two others come to lie. */
const MADE = [contractAddressOf(CONTRACT, 0n), contractAddressOf(OTHER, 0n)];
const ACCOUNTS = [CONTRACT, OTHER, THIRD, BOB, ALICE, COINBASE, ...MADE];

function pick<T>(random: Random, list: readonly T[]): T {
  const one = list[random(list.length)];
  if (one === undefined) throw new RangeError("nothing to pick from");
  return one;
}

/** Code that writes bytes to the beginning of memory. */
function toMemory(bytes: string): string {
  let code = "";
  for (let at = 0; at < bytes.length; at += 64) {
    code += `7f${bytes.slice(at, at + 64).padEnd(64, "0")}${push(at / 2)}52`;
  }
  return code;
}

/** Init code of a contract. */
function returning(runtime: string): string {
  return `${toMemory(runtime)}${push(runtime.length / 2)}5ff3`;
}

/** Some parts and an end; contracts that it makes make others, so many levels deep. */
function body(random: Random, levels: number): string {
  let code = "";
  for (let parts = 1 + random(6); parts > 0; parts--) code += part(random, levels);
  const ends = [
    `73${pick(random, ACCOUNTS).slice(2)}ff`,
    "30ff",
    `${push(random(40))}5ffd`,
    `${push(random(70))}5ff3`,
    "fe",
    "",
    "",
    "",
  ];
  return code + pick(random, ends);
}

function part(random: Random, levels: number): string {
  const slot = () => push(random(3));
  const kind = random(20);
  if (kind < 4) return call(random, slot());
  if (kind < 8) return levels > 0 ? creation(random, levels) : `${slot()}50`;
  const parts = [
    `${push(random(3))}${slot()}55`,
    `${push(random(3))}${slot()}55`,
    `${slot()}54${slot()}55`,
    `${push(1 + random(5))}${slot()}5d`,
    `${slot()}5c${slot()}55`,
    "3d5f5f3e",
    `${push(random(40))}${push(random(40))}5f3e`,
    `47${slot()}55`,
    `${push(random(5))}${push(random(64))}5fa1`,
    `73${pick(random, ACCOUNTS).slice(2)}${pick(random, ["3b", "3f", "31"])}${slot()}55`,
    `${push(random(90))}${push(random(90))}${push(random(90))}5e59${slot()}55`,
    `${push(random(12))}40${slot()}55`,
    `${push(random(3))}49${slot()}554a50`,
  ];
  return pick(random, parts);
}

function call(random: Random, slot: string): string {
  const value = random(3) === 0 ? BigInt(random(12)) : 0n;
  const gas = push(pick(random, [random(3_000), 60_000, 200_000, 30_000_000]));
  const opcode = pick(random, ["f1", "f1", "f2", "f4", "fa"] as const);
  const bytes = { inBytes: random(64), outBytes: random(64) };
  return `${callCode(opcode, pick(random, ACCOUNTS), { value, gas, ...bytes })}${slot}55`;
}

/** Makes a contract, and mostly calls it, once or twice, and looks at what is there then. */
function creation(random: Random, levels: number): string {
  const inits = [
    () => body(random, levels - 1),
    () => `${body(random, 0)}${returning(body(random, 0))}`,
    () => returning(body(random, levels - 1)),
    () => returning(body(random, levels - 1)),
  ];
  const init = pick(random, inits)();
  const value = push(random(3) === 0 ? random(9) : 0);
  const [salt, opcode] = pick(random, [["", "f0"] as const, [push(random(2)), "f5"] as const]);
  const make = `${toMemory(init)}${salt}${push(init.length / 2)}5f${value}${opcode}`;
  if (random(4) === 0) return `${make}50`;
  const paid = push(random(3) === 0 ? random(7) : 0);
  const once = `5f5f5f5f${paid}856201fffff1`;
  const again = random(2) === 0 ? `50${once}` : "";
  const look = random(2) === 0 ? `80${pick(random, ["3b", "3f", "31"])}${push(random(3))}55` : "";
  return `${make}${once}${again}50${look}50`;
}

interface Sent {
  readonly to: Address | undefined;
  readonly data: string;
  readonly gasLimit: bigint;
  readonly valueAtoken: bigint;
  readonly accessList: readonly Address[];
}

/** Contracts, and the transactions that come to them. */
export interface Sequence {
  readonly codes: readonly [string, string, string];
  /** Coins lie where a contract is going to be. */
  readonly hasCoinsAhead: boolean;
  readonly sent: readonly Sent[];
}

/** The sequence of a seed. */
export function sequenceOf(seed: number): Sequence {
  const random = randomOf(seed);
  const first = () => part(random, 2) + part(random, 2) + body(random, 2);
  const codes = [first(), first(), body(random, 1)] as const;
  const sent = Array.from({ length: 2 + random(3) }, (): Sent => {
    const to = random(5) === 0 ? undefined : pick(random, [CONTRACT, OTHER, THIRD]);
    const init = body(random, 1);
    return {
      to,
      data: to !== undefined ? "c0ffee".repeat(11) : random(2) === 0 ? init : returning(init),
      gasLimit: pick(random, [60_000n, 400_000n, 3_000_000n]),
      valueAtoken: BigInt(random(4)),
      accessList: random(3) === 0 ? [pick(random, ACCOUNTS)] : [],
    };
  });
  return { codes, hasCoinsAhead: random(3) === 0, sent };
}

/** What each transaction of a sequence leaves behind. */
export async function sequenceOutcomes(
  { codes, hasCoinsAhead, sent }: Sequence,
  open: (state: JournaledState) => Promise<TransactionEngine>,
) {
  const state = new JournaledState(
    new MemoryState({
      [ALICE]: { balanceAtoken: TEN },
      [CONTRACT]: { code: codes[0], balanceAtoken: 40n, storage: { 1: 5n, 2: 9n } },
      [OTHER]: { code: codes[1], balanceAtoken: 5n, storage: { 0: 1n } },
      [THIRD]: { code: codes[2] },
      ...(hasCoinsAhead ? { [contractAddressOf(CONTRACT, 0n)]: { balanceAtoken: 3n } } : {}),
    }),
  );
  const engine = await open(state);
  const outcomes = [];
  for (const { data, accessList, ...rest } of sent) {
    const recorder = new BalanceRecorder();
    const storageKeys = [bytesToHash32(bigintToWord(1n))];
    const message = {
      ...rest,
      from: ALICE,
      data: hexToBytes(`0x${data}`),
      gasPriceAtoken: 1n,
      accessList: accessList.map((address) => ({ address, storageKeys })),
    };
    state.checkpoint();
    const result = await engine.run(message, BLOCK, {
      recorder,
      limitNs: Number.POSITIVE_INFINITY,
    });
    destroy(result.destroyed, state, recorder);
    await engine.finish(true);
    state.commit();
    const created = result.error === undefined ? result.createdAddress : undefined;
    outcomes.push({ ...leftBehind(result, recorder, state), created });
  }
  return outcomes;
}
