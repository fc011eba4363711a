/**
 * A node whose pool a flood at the floor price has filled to the last place: payments at the
 * suggested price get in at once, of few senders and of many, and the next blocks hold them.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { bytesToHex, hexToBytes } from "../../../chain/hex.js";
import { signLegacy } from "../../../chain/transaction.js";
import { until } from "../../helpers/until.js";
import { evm, evmBatch } from "../calls.js";
import { type NetworkNode, type RunningNetwork, writeNetwork } from "../network.js";

/** Places of the pool (D23). */
const PLACES = 200_000;

/** Long enough to fill the pool between two blocks. */
const BLOCK_INTERVAL_MS = 40_000;

const FLOOR_ATOKEN = 1n;
const SUGGESTED_ATOKEN = 25_000_000n;

/** Of the flood, with more than there is room for, and for what a block takes meanwhile. */
const FLOODERS = 1_300;
const EACH = 260;

const PAYMENTS = 20;
const CROWD = 1_000;

const BATCH = 500;
const LANES = 4;

const WAIT = { timeoutMs: 600_000 };

interface Account {
  readonly key: Uint8Array;
  readonly address: ReturnType<typeof privateKeyToAddress>;
}

let network: RunningNetwork;
let node: NetworkNode;

function account(index: number): Account {
  const key = hexToBytes(keccak256Hex(Buffer.from(`pool flood ${index}`)));
  return { key, address: privateKeyToAddress(key) };
}

const flooders = Array.from({ length: FLOODERS }, (_, index) => account(index));
const crowd = Array.from({ length: CROWD }, (_, index) => account(1_000_000 + index));
const wallet = account(2_000_000);

function payment(key: Uint8Array, nonce: number, gasPriceAtoken: bigint, to = wallet): string {
  const intent = { nonce: BigInt(nonce), gasPriceAtoken, to: to.address, valueAtoken: 1n };
  const rest = { chainId: 6940n, gasLimit: 21_000n, data: new Uint8Array(0) };
  return bytesToHex(signLegacy({ ...rest, ...intent }, key));
}

/** @returns hashes, or what the node says instead */
async function submit(raws: readonly string[]): Promise<readonly string[]> {
  const calls = raws.map((raw) => ({ method: "eth_sendRawTransaction", params: [raw] }));
  const answers = await evmBatch<string>(node, calls);
  return answers.map(({ result, error }) => result ?? error?.message ?? "nothing");
}

async function pooled(): Promise<number> {
  const { pending, queued } = await evm<{ pending: string; queued: string }>(
    node,
    "txpool_status",
    [],
  );
  return Number(pending) + Number(queued);
}

async function minedAt(hashes: readonly string[]): Promise<readonly (string | undefined)[]> {
  const places: (string | undefined)[] = [];
  for (let at = 0; at < hashes.length; at += BATCH) {
    const calls = hashes
      .slice(at, at + BATCH)
      .map((hash) => ({ method: "eth_getTransactionReceipt", params: [hash] }));
    const answers = await evmBatch<{ blockNumber: string; status: string } | null>(node, calls);
    for (const { result } of answers) {
      places.push(result?.status === "0x1" ? result.blockNumber : undefined);
    }
  }
  return places;
}

async function memoryMegabytes(): Promise<number> {
  const page = await (await fetch(`http://127.0.0.1:${node.ports.metrics}/metrics`)).text();
  const match = /^process_resident_memory_bytes ([0-9.e+]+)$/m.exec(page);
  return Math.round(Number(match?.[1]) / 1_000_000);
}

beforeAll(async () => {
  network = await writeNetwork({ validators: 1, blockIntervalMs: BLOCK_INTERVAL_MS });
  const [first] = network.validators;
  if (first === undefined) throw new Error("no validator");
  node = first;
  await node.start();
  const faucet = hexToBytes(network.faucetKey);
  const funded = [wallet, ...crowd, ...flooders];
  const raws = funded.map((to, nonce) => {
    const intent = { nonce: BigInt(nonce), gasPriceAtoken: SUGGESTED_ATOKEN, to: to.address };
    const rest = { chainId: 6940n, gasLimit: 21_000n, data: new Uint8Array(0) };
    return bytesToHex(signLegacy({ ...rest, ...intent, valueAtoken: 10n ** 18n }, faucet));
  });
  const hashes: string[] = [];
  for (let at = 0; at < raws.length; at += BATCH) {
    hashes.push(...(await submit(raws.slice(at, at + BATCH))));
  }
  await until(async () => (await minedAt(hashes)).every((one) => one !== undefined), WAIT);
}, 900_000);

afterAll(async () => {
  await network?.remove();
}, 60_000);

/** Fills the pool to the last place, nonce by nonce; what blocks take meanwhile is made up for. */
async function fill(): Promise<{ sent: number; refused: number }> {
  const chances = FLOODERS * EACH;
  let [next, sent, refused] = [0, 0, 0];
  const lane = async () => {
    while (next < chances && refused === 0) {
      const from = next;
      next += BATCH;
      const raws = Array.from({ length: Math.min(BATCH, chances - from) }, (_, offset) => {
        const [sender, nonce] = [
          (from + offset) % FLOODERS,
          Math.floor((from + offset) / FLOODERS),
        ];
        return payment(flooders[sender]?.key ?? wallet.key, nonce, FLOOR_ATOKEN);
      });
      const answers = await submit(raws);
      sent += raws.length;
      refused += answers.filter((answer) => !answer.startsWith("0x")).length;
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return { sent, refused };
}

it("payments at the suggested price are taken and mined while a flood holds all places", async () => {
  const beforeMegabytes = await memoryMegabytes();
  const startMs = performance.now();
  const { sent, refused } = await fill();
  const fillMs = performance.now() - startMs;
  const held = await pooled();
  const fullMegabytes = await memoryMegabytes();
  console.log(
    `${sent} transfers at the floor sent in ${Math.round(fillMs)} ms, ${refused} refused: ` +
      `${held} in the pool; memory ${beforeMegabytes} -> ${fullMegabytes} MB`,
  );
  expect(refused).toBeGreaterThan(0);
  expect(held).toBeGreaterThanOrEqual(PLACES - BATCH * LANES);

  const answerMs = performance.now();
  const payments = Array.from({ length: PAYMENTS }, (_, nonce) =>
    payment(wallet.key, nonce, SUGGESTED_ATOKEN, crowd[nonce]),
  );
  const single = crowd.map(({ key }) => payment(key, 0, SUGGESTED_ATOKEN));
  const answers = await Promise.all([
    submit(payments),
    submit(single.slice(0, CROWD / 2)),
    submit(single.slice(CROWD / 2)),
  ]);
  const hashes = answers.flat();
  console.log(
    `${hashes.length} payments answered in ${Math.round(performance.now() - answerMs)} ms`,
  );
  const expected = [...payments, ...single].map((raw) => keccak256Hex(hexToBytes(raw)));
  expect(hashes).toEqual(expected);
  await until(async () => (await minedAt(hashes)).every((one) => one !== undefined), WAIT);
  const places = new Set(await minedAt(hashes));
  console.log(`mined in blocks ${[...places].map(Number).join(", ")}`);
  // Whatever the flood did, the one or two blocks that came next hold them all.
  expect(places.size).toBeLessThanOrEqual(2);
  expect(node.faults).toEqual([]);
}, 900_000);
