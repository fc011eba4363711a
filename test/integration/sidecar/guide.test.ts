/** Programs of the guide against servers that answer what a chain seldom does. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { AbiCoder, getAddress, id, Transaction, zeroPadValue } from "ethers";
import { parseJournaledBlock } from "../../../rpc-client/journal-codec.js";
import { ERROR_TABLE } from "../../../sidecar/rosetta/errors.js";
import { toRosettaBlock } from "../../../sidecar/rosetta/operations.js";
import { tokenMovesOf } from "../../../sidecar/rosetta/token-operations.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { ALICE, BOB, change, hashOf, transaction } from "../../helpers/chains/journal-chain.js";
import { CURRENCY, GOLD, SILVER, tokenEntry } from "../../helpers/chains/known-tokens.js";
import { guideFiles, layOut, outputOf, temporaryFolders } from "../../helpers/processes/guide.js";
import { KEY, RECIPIENT, transferData, WALLET } from "../../unit/sidecar/construction-api/steps.js";
import { offlineServer } from "../../unit/sidecar/servers.js";

const FILES = new Map([...guideFiles("custodians.md"), ...guideFiles("integrators.md")]);

const folders = temporaryFolders();
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});
afterAll(() => folders.removeAll());

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const read = (folder: string, name: string) => readFileSync(join(folder, name), "utf8");

/** What these programs name in their requests. */
interface Fields {
  readonly offset?: number;
  readonly block_identifier?: { readonly index: number };
  readonly signed_transaction?: string;
}

/** A server that answers each request with what is given for its path, or refuses it with its error. */
function answering(answer: (path: string, fields: Fields) => object): Promise<string> {
  return listen((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      const reply = answer(request.url ?? "", JSON.parse(text));
      response.writeHead("code" in reply ? 500 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify(reply));
    });
  });
}

/** The chapters' files in a folder of their own, with others beside them. */
function openFolder(files: Readonly<Record<string, unknown>> = {}): string {
  const folder = folders.make("guide");
  layOut(folder, FILES);
  for (const [name, value] of Object.entries(files)) {
    writeFileSync(join(folder, name), typeof value === "string" ? value : JSON.stringify(value));
  }
  return folder;
}

describe("deposits.mjs", () => {
  /** One transaction that brings both tokens, as a server with a list of them tells it. */
  function blockUnder(list: readonly (typeof GOLD)[]) {
    const log = ({ metadata }: typeof GOLD, units: bigint) => ({
      address: metadata.contractAddress.toLowerCase(),
      topics: [
        id("Transfer(address,address,uint256)"),
        zeroPadValue(ALICE, 32),
        zeroPadValue(BOB, 32),
      ],
      data: AbiCoder.defaultAbiCoder().encode(["uint256"], [units]),
    });
    const block = parseJournaledBlock({
      blockHash: hashOf("block"),
      blockNumber: "0x7",
      parentHash: hashOf("parent"),
      timestampMs: 1_790_000_000_000,
      transactions: [
        transaction("tx", 0, {
          logs: [log(SILVER, 1n), log(GOLD, 2n), log(SILVER, 3n), log(GOLD, 4n)],
          changes: [change({ reason: "CALL", from: ALICE, to: BOB, amount: 5n })],
        }),
      ],
      blockChanges: [],
      minted: "0x0",
      burned: "0x0",
    });
    const registry = new TokenRegistry(list.map(tokenEntry));
    const moves = tokenMovesOf(block, registry, () => false);
    return toRosettaBlock(block, { moves: moves.byTransaction, leftOut: [] });
  }

  /** What the program prints of it: key by value. */
  async function keysUnder(list: readonly (typeof GOLD)[]): Promise<Record<string, string>> {
    const block = blockUnder(list);
    const { block_identifier } = block;
    const ONLINE = await answering((path, fields) => {
      if (path === "/block") return { block };
      const event = { sequence: 7, block_identifier, type: "block_added" };
      const events = (fields.offset ?? 0) > 7 ? [] : [event];
      return { max_sequence: 8, events };
    });
    const run = [process.execPath, "deposits.mjs", BOB];
    const lines = (await outputOf(run, openFolder(), { ONLINE })).trim().split("\n");
    return Object.fromEntries(lines.map((line) => [JSON.parse(line).value, JSON.parse(line).key]));
  }

  it("gives a deposit the same key, whichever other tokens the server knows", async () => {
    const alone = await keysUnder([GOLD]);
    const both = await keysUnder([GOLD, SILVER]);
    expect(Object.keys(alone)).toEqual(["2", "4", "5"]);
    expect(both).toMatchObject(alone);
    expect(new Set(Object.values(both)).size).toBe(5);
  });
});

describe("prepare.mjs", () => {
  it("writes addresses as they are read back, however the wish has them", async () => {
    const OFFLINE = await listen(offlineServer().app);
    const contractAddress = GOLD.metadata.contractAddress.toLowerCase();
    const gold = { ...GOLD, metadata: { contractAddress } };
    const to = RECIPIENT.toLowerCase();
    const wish = { to, value: "7", currency: gold, metadata: { max_fee: "90000" } };
    const facts = { chain_id: "6940", nonce: "7", gas_price: "1", gas_limit: "90000" };
    const folder = openFolder({
      "wish.json": wish,
      "facts.json": { metadata: { ...facts, data: transferData(to, 7n) } },
      "public-key.txt": KEY.compressedPublicKey.slice(2),
      "private-key.txt": WALLET.privateKey,
    });
    await outputOf([process.execPath, "prepare.mjs"], folder, { OFFLINE });
    await outputOf([process.execPath, "sign.mjs"], folder, { OFFLINE });
    expect(JSON.parse(read(folder, "signed.json"))).toHaveProperty("signed_transaction");
  });
});

describe("sign.mjs", () => {
  it("signs an approved call whose calldata is text, and none in its place", async () => {
    const OFFLINE = await listen(offlineServer().app);
    const harvest = id("harvest()").slice(0, 10);
    const metadata = { max_fee: "90000", data: harvest };
    const facts = { chain_id: "6940", nonce: "7", gas_price: "1", gas_limit: "90000" };
    const folder = openFolder({
      "wish.json": { to: RECIPIENT, value: "0", currency: CURRENCY, metadata },
      "facts.json": { metadata: { ...facts, data: id("burn()").slice(0, 10) } },
      "public-key.txt": KEY.compressedPublicKey.slice(2),
      "private-key.txt": WALLET.privateKey,
    });
    const program = (name: string) => outputOf([process.execPath, name], folder, { OFFLINE });
    await program("prepare.mjs");
    await expect(program("sign.mjs")).rejects.toThrow(/AssertionError/);
    const approved = { metadata: { ...facts, data: harvest } };
    writeFileSync(join(folder, "facts.json"), JSON.stringify(approved));
    await program("sign.mjs");
    const { signed_transaction } = JSON.parse(read(folder, "signed.json"));
    expect(Transaction.from(signed_transaction).data).toBe(harvest);
  });
});

describe("send.mjs", () => {
  const transaction_identifier = { hash: hashOf("paid") };
  const side = (address: string, value: string) => ({
    type: "CALL",
    account: { address: getAddress(address) },
    amount: { value, currency: CURRENCY },
  });
  const wanted = [side(ALICE, "-7"), side(BOB, "7")];

  /** Runs it against a chain whose block 3 has these operations, and whose head is 4. */
  async function send(
    operations: readonly object[],
    options: { readonly status?: string; readonly resubmitted?: object } = {},
  ) {
    const { status = "SUCCESS", resubmitted = { transaction_identifier } } = options;
    const submitted: string[] = [];
    const paid = { transaction_identifier, operations, metadata: { status } };
    const ONLINE = await answering((path, fields) => {
      if (path === "/construction/submit") {
        submitted.push(fields.signed_transaction ?? "");
        return submitted.length === 1 ? { transaction_identifier } : resubmitted;
      }
      const { index = 0 } = fields.block_identifier ?? {};
      if (index > 4) return { code: 202, message: "block above tip", retriable: true };
      return { block: { transactions: index === 3 && operations.length > 0 ? [paid] : [] } };
    });
    const folder = openFolder({
      "prepared.json": { operations: wanted },
      "facts.json": { height: 0 },
      "signed.json": { signed_transaction: "0xf8", transaction_identifier },
    });
    const run = outputOf([process.execPath, "send.mjs"], folder, { ONLINE });
    return { run, submitted };
  }

  const told = (list: readonly object[], status = "SUCCESS") =>
    list.map((operation) => ({ ...operation, status }));

  it("sends the same bytes again after each block without them", async () => {
    const { run, submitted } = await send(told(wanted));
    expect(JSON.parse(await run)).toEqual({ settled: transaction_identifier.hash, block: 3 });
    expect(submitted).toEqual(["0xf8", "0xf8", "0xf8"]);
  });

  it("ends where another transaction has the nonce by then", async () => {
    const resubmitted = { code: 401, message: "nonce too low", retriable: false };
    const { run } = await send([], { resubmitted });
    await expect(run).rejects.toThrow(/401 nonce too low/);
  });

  it("asks for the approved operations alone: what a recipient's code undid is its own", async () => {
    const undone = told([side(BOB, "-1"), side(ALICE, "1")], "FAILURE");
    const { run } = await send([...told(wanted), ...undone]);
    expect(JSON.parse(await run)).toMatchObject({ block: 3 });
  });

  it("takes nothing for paid that was undone", async () => {
    const undone = await send(told(wanted, "FAILURE"));
    await expect(undone.run).rejects.toThrow(/missing/);
    const failed = await send(told(wanted), { status: "FAILURE" });
    await expect(failed.run).rejects.toThrow(/FAILURE/);
  });
});

describe("the custodians' table of refusals", () => {
  it("has each that the node's answer to signed bytes may become", () => {
    const source = readFileSync("sidecar/construction-api/submit.ts", "utf8");
    const [, list = ""] = /const SUBMIT_ERRORS[^{]*\{([^}]*)\}/.exec(source) ?? [];
    const codes = [...list.matchAll(/: "([A-Z_]+)"/g)].map(([, code]) => code);
    // Bytes that are known are sent; another type is refused before the node is asked.
    const never = ["INTERNAL", "TRANSACTION_TYPE_NOT_SUPPORTED"];
    const needed = [...codes, "NODE_FAULT", "NODE_BUSY"].filter(
      (code) => !never.includes(`${code}`),
    );
    const chapter = readFileSync("docs/guide/custodians.md", "utf8");
    const rows = [...chapter.matchAll(/^\| ([0-9, -]+) \|/gm)].map(([, numbers = ""]) => numbers);
    const listed = rows
      .join(", ")
      .split(", ")
      .map((text) => text.split("-").map(Number));
    const missing = Object.entries(ERROR_TABLE)
      .filter(([code]) => needed.includes(code))
      .filter(([, { number }]) => {
        return !listed.some(([first = 0, last = first]) => first <= number && number <= last);
      });
    expect(needed.length).toBeGreaterThan(10);
    expect(missing.map(([code]) => code)).toEqual([]);
  });
});
