/**
 * A balance with its proof, over a real chain and its consensus RPC: the file says what the state
 * says, leads over a change of the validators, and whatever is changed in it is refused.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { decodeRlp, encodeRlp, keccak256, Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { hexToBytes } from "../../../chain/hex.js";
import {
  type BundleContents,
  encodeBundle,
  type LightBlockJson,
  parseBundle,
} from "../../../cli/audit/balance/bundle.js";
import { collectBundle, headerSource } from "../../../cli/audit/balance/collect.js";
import { verifyBundle } from "../../../cli/audit/balance/verify.js";
import { runVerifyBalance } from "../../../cli/commands/balance-proof.js";
import { encodeGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { CometTestChain } from "../../helpers/chains/comet-chain.js";
import { proofNodeOf } from "../../helpers/chains/proof-node.js";

const wallet = new Wallet(`0x${"11".repeat(32)}`);
const RECEIVER = parseAddress(`0x${"5e".repeat(20)}`);
const NOBODY = parseAddress(`0x${"77".repeat(20)}`);
const PAID = 123_456_789_012_345_678_901n;
const { signal } = new AbortController();

/** Height from which the first key alone decides; the others do not sign any more. */
const NEW_SET_HEIGHT = 6;
const LAST = 12;
/** Fractions of the way that a bisection visits, and the block at which the set changes. */
const MOST_HEADERS = 6;

let chain: CometTestChain;
let genesis: Genesis;

beforeAll(async () => {
  chain = await CometTestChain.open(wallet.address);
  genesis = chain.genesis;
  const paid = [await payment()];
  await chain.mineToNewSet(
    Array.from({ length: LAST }, (_, index) => (index === 2 ? paid : [])),
    NEW_SET_HEIGHT,
  );
});
afterAll(() => chain.close());

function payment(): Promise<string> {
  const fields = { type: 0, chainId: 6940, nonce: 0, gasLimit: 21_000, gasPrice: 25_000_000 };
  return wallet.signTransaction({ ...fields, to: RECEIVER, value: PAID });
}

const node = proofNodeOf(() => chain);

function collect(address: typeof RECEIVER, height: number | undefined): Promise<BundleContents> {
  const headers = headerSource({ url: chain.url, oldestHeight: async () => 1, signal });
  return collectBundle({ node, headers, genesis, address, height, signal });
}

/** Through the text, as a stranger reads it. */
const verify = (contents: BundleContents, by: Genesis = genesis) =>
  verifyBundle(parseBundle(encodeBundle(contents)), by);

describe("a balance proof", () => {
  it("proves the balance at every height, the genesis and absence included", async () => {
    const proven: [number, bigint, number][] = [];
    for (const height of [0, 2, 3, NEW_SET_HEIGHT - 2, NEW_SET_HEIGHT - 1, LAST - 1]) {
      const { balanceAtoken, headers } = await verify(await collect(RECEIVER, height));
      expect(headers).toBeLessThanOrEqual(MOST_HEADERS);
      proven.push([height, balanceAtoken, headers]);
    }
    expect(proven.map(([height, balance]) => [height, balance])).toEqual([
      [0, 0n],
      [2, 0n],
      [3, PAID],
      [4, PAID],
      [5, PAID],
      [11, PAID],
    ]);
    // Below the change the genesis set itself signs; above it a header in between must lead there.
    expect(proven.map(([, , headers]) => headers > 1)).toEqual([
      false,
      false,
      false,
      false,
      true,
      true,
    ]);
    const none = await verify(await collect(NOBODY, LAST - 1));
    expect(none).toMatchObject({ balanceAtoken: 0n, nonce: 0n });
    const payer = await verify(await collect(parseAddress(wallet.address), LAST - 1));
    expect(payer.nonce).toBe(1n);
    const block = chain.chain.view.block(LAST - 1)?.block;
    expect(payer.blockHash).toBe(block?.hash);
    expect(payer.timestampSeconds).toBe(block?.header.timestampSeconds);
  });

  it("takes the newest block that is signed for when no height is named", async () => {
    expect((await collect(RECEIVER, undefined)).height).toBe(LAST - 1);
  });

  it("says that a height is not there yet", async () => {
    await expect(collect(RECEIVER, LAST + 1)).rejects.toMatchObject({ code: "BAD_RANGE" });
  });

  it("does not believe a node whose headers others signed", async () => {
    const other = { ...genesis, validators: genesis.validators.slice(0, 3) };
    const headers = headerSource({ url: chain.url, oldestHeight: async () => 1, signal });
    const options = { node, headers, genesis: other, address: RECEIVER, height: 3, signal };
    await expect(collectBundle(options)).rejects.toMatchObject({ code: "GENESIS_UNREACHABLE" });
  });
});

describe("a changed file", () => {
  it("with the proof of another account's absence proves nothing, or the same", async () => {
    const good = await collect(RECEIVER, LAST - 1);
    const absent = Array.from({ length: 40 }, (_, n) => {
      return parseAddress(`0x${(n + 1).toString(16).padStart(40, "7")}`);
    });
    for (const address of absent) {
      const { accountProof } = await collect(address, LAST - 1);
      const found = await verify({ ...good, accountProof }).catch((error: unknown) => error);
      const isSame = found instanceof Error || Reflect.get(Object(found), "balanceAtoken") === PAID;
      if (isSame) continue;
      expect({ address, found }).toEqual({ address, found: "nothing, or the same" });
    }
  });

  const json = (value: unknown) => structuredClone(value) as Record<string, never>;
  const changed = (contents: BundleContents, change: (list: LightBlockJson[]) => void) => {
    const list = contents.path.map((one) => structuredClone(one));
    change(list);
    return { ...contents, path: list };
  };
  const refused = (contents: BundleContents, by?: Genesis) =>
    expect(verify(contents, by)).rejects.toMatchObject({ code: "NOT_PROVEN" });

  it("is refused whatever is changed", async () => {
    const good = await collect(RECEIVER, LAST - 1);
    await verify(good);
    const older = await collect(RECEIVER, 2);
    // The account's leaf with another balance, and with it a root of its own.
    const leaf = decodeRlp(good.accountProof.at(-1) ?? new Uint8Array(0));
    if (!Array.isArray(leaf)) throw new Error("no leaf");
    const [key, record] = leaf;
    const fields = decodeRlp(String(record));
    if (!Array.isArray(fields)) throw new Error("no record");
    const richer = encodeRlp([String(key), encodeRlp(fields.with(1, "0x7fffffffffffffff"))]);
    const forged = [...good.accountProof.slice(0, -1), hexToBytes(richer)];
    await refused({ ...good, accountProof: forged });
    await refused({ ...good, accountProof: [] });
    await refused({ ...good, accountProof: good.accountProof.slice(0, -1) });
    await refused({ ...good, accountProof: older.accountProof });
    await refused({ ...good, address: parseAddress(wallet.address) });
    await refused({ ...good, height: LAST - 2 });
    await refused({ ...good, header: older.header });
    await refused({ ...good, chainId: "chain_1-1" });
    await refused({ ...good, path: older.path });
    await refused({ ...good, path: good.path.slice(-1) });
    await refused({ ...good, path: good.path.slice(0, -1) });
    await refused({ ...good, path: good.path.toReversed() });
  });

  it("is refused with one signature, one power, one field of a header changed", async () => {
    const good = await collect(RECEIVER, LAST - 1);
    const at = good.path.length - 1;
    const replace = (from: RegExp, to: string) =>
      changed(good, (list) => {
        const text = JSON.stringify(list[at]);
        if (!from.test(text)) throw new Error(`nothing like ${from}`);
        list[at] = JSON.parse(text.replace(from, to)) as LightBlockJson;
      });
    const flip = (text: string) => text.replace(/^./, (first) => (first === "A" ? "B" : "A"));
    const signature = /"signature":"([^"]+)"/.exec(JSON.stringify(good.path[at]))?.[1] ?? "";
    await refused(replace(/"signature":"[^"]+"/, `"signature":"${flip(signature)}"`));
    await refused(replace(/"voting_power":"1000"/, '"voting_power":"1001"'));
    await refused(replace(/"app_hash":"../, '"app_hash":"00'));
    await refused(replace(/"round":0/, '"round":1'));
    // The same block under the genesis of a network with another first set.
    await refused(good, { ...genesis, validators: genesis.validators.slice(1) });
    await refused(good, { ...genesis, cosmosChainId: "chain_9-9" });
  });

  it("that is no proof at all is unreadable, and the command says so", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-proof-"));
    const file = (name: string, text: string) => {
      fs.writeFileSync(path.join(folder, name), text);
      return path.join(folder, name);
    };
    const printed: string[] = [];
    const warned: string[] = [];
    const context = { home: folder, portOffset: 0, json: true, env: {}, signal };
    const run = (name: string) =>
      runVerifyBalance(
        { ...context, print: (line) => printed.push(line) },
        { file: name, genesis: path.join(folder, "genesis.json") },
        (line) => warned.push(line),
      );
    file("genesis.json", encodeGenesis(genesis));
    const good = encodeBundle(await collect(RECEIVER, LAST - 1));
    expect(await run(file("good.json", good))).toBe(0);
    expect(JSON.parse(printed.at(-1) ?? "")).toMatchObject({
      ok: true,
      height: LAST - 1,
      balanceAtoken: PAID.toString(),
    });
    const lying = good.replace(/"height": 11,/, '"height": 10,');
    expect(await run(file("lying.json", lying))).toBe(1);
    expect(json(JSON.parse(printed.at(-1) ?? ""))["ok"]).toBe(false);
    for (const text of ["", "{}", "[]", good.slice(0, -200), good.replace("/1", "/2")]) {
      expect(await run(file("other.json", text))).toBe(2);
    }
    expect(await run(path.join(folder, "absent.json"))).toBe(2);
    expect(warned.at(-1)).toContain("absent.json");
    fs.rmSync(folder, { recursive: true });
  });

  it("stands on the hash that everybody knows the block by", async () => {
    const good = await collect(RECEIVER, 3);
    expect(keccak256(good.header)).toBe(chain.chain.view.block(3)?.block.hash);
  });
});
