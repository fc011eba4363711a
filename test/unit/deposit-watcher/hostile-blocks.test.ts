/**
 * Blocks by somebody who wants a deposit missed, invented or counted twice by what he writes into
 * memos, calldata, logs and token symbols: the balance journal says what really moved, and the way
 * from the sidecar's encoder over HTTP to the watcher's matching must come to the same.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { AddressPrefixes } from "../../../chain/address-prefixes.js";
import { parseTokenList } from "../../../chain/token-list.js";
import { matchBlocks, type MatchResult } from "../../../deposit-watcher/deposit-match.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import {
  createDataApiClient,
  type DataApiClient,
} from "../../../rpc-client/data-api/data-api-client.js";
import type { DataBlock } from "../../../rpc-client/data-api/data-block.js";
import { parseJournaledBlock } from "../../../rpc-client/journal-codec.js";
import { compileResponseCheck } from "../../../runtime/http/api-schema.js";
import { apiFile } from "../../../sidecar/app.js";
import { encodeBlockAccounts } from "../../../sidecar/rosetta/block-accounts.js";
import { encodeBlock } from "../../../sidecar/rosetta/encoded-block.js";
import { type RosettaBlock, toRosettaBlock } from "../../../sidecar/rosetta/operations.js";
import { tokenMovesOf } from "../../../sidecar/rosetta/token-operations.js";
import { TokenRegistry } from "../../../sidecar/rosetta/token-registry.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";
import { createRandom } from "../../helpers/random.js";
import { change, hashOf, transaction } from "../../helpers/chains/journal-chain.js";
import { NETWORK } from "../sidecar/servers.js";

const SEED = 20_261_120;
const BLOCKS = 150;
const random = createRandom(SEED);

const hot = testAddress(0xabcdef);
const ours = [0xabcdea, 0xfeedbee, 0xdeadbeefcafe].map(testAddress);
const strangers = [1, 2, 0xabcdee, 0xfeedbe].map(testAddress);
const anybody = [hot, ...ours, ...strangers];

const prefixes = new AddressPrefixes();
for (const address of [hot, ...ours]) prefixes.add(address);

/** What the operator may pin, as hostile as the registry takes it. */
const registry = new TokenRegistry(
  parseTokenList(
    JSON.stringify([
      { contractAddress: testAddress(0x70), symbol: '\\"]}},"address":"', decimals: 18 },
      { contractAddress: testAddress(0x71), symbol: "address", decimals: 0 },
      { contractAddress: testAddress(0x72), symbol: "\\u0061ddress", decimals: 255 },
      // Contracts that are themselves customers' addresses.
      { contractAddress: ours[0], symbol: "transactions", decimals: 18 },
    ]),
  ),
);

/** Texts of memos; each is also cut and put together at random. */
const SCRAPS = [
  "address",
  '"address":"',
  'address":"',
  '{"account":{"address":"',
  '"}}]}',
  "]}}",
  '"transactions":[',
  "cut out",
  "\\",
  '\\"',
  "\\u0061",
  "\\u0022",
  "\u2028\ufeff",
  "é😀",
  "\n\t",
  "[[[[{{{{",
  "__proto__",
  ...anybody,
  ...ours.map(toChecksumAddress),
];

const memo = () =>
  Array.from({ length: 1 + random.integer(6) }, () => random.pick(SCRAPS)).join("");

function input(): string {
  const kind = random.integer(5);
  if (kind === 0) return "0x";
  if (kind === 1) return `0x${Buffer.from(random.bytes(random.integer(80))).toString("hex")}`;
  if (kind === 2) return `0x${ours[0]?.slice(2) ?? ""}`;
  return `0x${Buffer.from(memo()).toString("hex")}`;
}

function randomChange() {
  const effective = random.integer(4) > 0;
  const isInner = random.integer(3) === 0;
  return change({
    reason: random.pick(["CALL", "CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]),
    from: random.pick(anybody),
    to: random.pick(anybody),
    amount: random.pick([0n, 1n, 7n, 7n, 10n ** 18n, 2n ** 200n]),
    effective,
    tracePath: isInner ? Array.from({ length: random.integer(900) }, () => "0").join("_") : "",
    ...(effective ? {} : { error: random.pick(["execution reverted", memo()]) }),
  });
}

const word = (value: string) => `0x${value.replace("0x", "").padStart(64, "0")}`;
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

function randomLog() {
  return {
    address: random.pick([...registry.tokens.map((token) => token.contractAddress), ...ours]),
    topics: [TRANSFER, word(random.pick(anybody)), word(random.pick([...anybody, testAddress(0)]))],
    data: word((10n ** 21n).toString(16)),
  };
}

function randomJournal(height: number): Record<string, unknown> {
  const list = Array.from({ length: random.integer(7) }, (_, index) =>
    transaction(`hostile ${height} ${index}`, index, {
      from: random.pick(anybody),
      to: random.integer(9) === 0 ? null : random.pick(anybody),
      input: input(),
      changes: [
        change({ reason: "FEE", from: random.pick(anybody), to: testAddress(0xfee), amount: 21n }),
        ...Array.from({ length: random.integer(5) }, randomChange),
      ],
      logs: Array.from({ length: random.integer(3) }, randomLog),
    }),
  );
  const mint = change({ reason: "MINT", to: random.pick(anybody), amount: 5n });
  return {
    blockHash: hashOf(`hostile ${height}`),
    blockNumber: `0x${height.toString(16)}`,
    parentHash: hashOf(`hostile ${height - 1}`),
    timestampMs: 1_790_000_000_000 + height,
    transactions: list,
    blockChanges: [mint],
    minted: "0x5",
    burned: "0x0",
  };
}

/** Moves of coins to and from our addresses, of the journal alone: place, account, amount. */
function truthOf(journal: Record<string, unknown>): string[] {
  const block = parseJournaledBlock(journal);
  const found: string[] = [];
  const lists = [...block.transactions.map(({ changes }) => changes), block.blockChanges];
  lists.forEach((changes, place) => {
    let index = 0;
    for (const { from, to, amountAtoken, effective, reason } of changes) {
      const receiving = from === undefined ? index : index + 1;
      index += (from === undefined ? 0 : 1) + (to === undefined ? 0 : 1);
      if (!effective || amountAtoken === 0n || from === to || to === undefined) continue;
      const isPaid = reason !== "MINT";
      if (ours.includes(to)) found.push(`${place}/${receiving} ${to} ${amountAtoken} ${isPaid}`);
      if (to === hot) found.push(`${place}/${receiving} ${to} ${amountAtoken}`);
    }
  });
  return found.toSorted();
}

const watched = {
  assetOf: () => undefined,
  walletFrom: (address: Address) => (address === hot ? 0 : undefined),
  customerOf: (address: Address) =>
    ours.includes(address) ? parseCustomerId(`c-${address}`) : undefined,
};

const checkReply = compileResponseCheck(apiFile("data"), "/block", "post");
let server: Server;
let client: DataApiClient;
let reply: Buffer;
let rosetta: RosettaBlock;

/** The sidecar's answer: a block, the accounts that it names, or transactions of it by their positions. */
function answerTo(path: string, text: string): Buffer {
  if (path === "/block") return reply;
  const encoded = encodeBlock(rosetta);
  const { method, parameters } = JSON.parse(text);
  const pieces: Buffer[] =
    method === "block_accounts"
      ? [encodeBlockAccounts(rosetta)]
      : parameters.blocks[0].positions.map((place: number) => encoded.transactionAt(place));
  const name = method === "block_accounts" ? "blocks" : "transactions";
  return Buffer.from(`{"result":{"${name}":[${pieces.join(",")}]},"idempotent":true}`);
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      response.end(answerTo(request.url ?? "", Buffer.concat(chunks).toString("utf8")));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  client = createDataApiClient({ url: `http://127.0.0.1:${port}`, network: NETWORK });
});

afterAll(async () => {
  client.close();
  await new Promise((resolve) => server.close(resolve));
});

const { signal } = new AbortController();
const isOurs = (address: Address) => address === hot || ours.includes(address);

async function matchOf(block: DataBlock, among?: AddressPrefixes): Promise<MatchResult> {
  const { height, hash } = block;
  const wanted = among === undefined ? { signal } : { among, signal };
  const transactions = await block.transactions(among === undefined ? () => true : isOurs, wanted);
  return matchBlocks([{ height, hash, transactions }], watched);
}

async function readBack(height: number): Promise<string[]> {
  const block = await client.block(height, { signal });
  const [brief] = await client.accountBlocks({ from: height, to: height }, { signal });
  if (block === undefined || brief === undefined) throw new Error("no block");
  const matched = await matchOf(block, prefixes);
  expect((await matchOf(block)).touches).toEqual(matched.touches);
  expect(await matchOf(brief, prefixes)).toEqual(matched);
  expect(await matchOf(brief)).toEqual(matched);
  expect(brief.addresses()).toEqual(block.addresses());
  const { deposits, walletInflows } = matched;
  return [
    ...deposits.map(
      ({ txIndex, opIndex, address, amountUnits, creditable }) =>
        `${txIndex}/${opIndex} ${address} ${amountUnits} ${creditable}`,
    ),
    ...walletInflows.map(
      ({ txIndex, opIndex, amountUnits }) => `${txIndex}/${opIndex} ${hot} ${amountUnits}`,
    ),
  ].toSorted();
}

describe("a block full of hostile text", () => {
  it("tells the watcher exactly what moved, whatever is written into it", async () => {
    let total = 0;
    for (let height = 1; height <= BLOCKS; height += 1) {
      const json = randomJournal(height);
      const journal = parseJournaledBlock(json);
      const { byTransaction } = tokenMovesOf(journal, registry, () => false);
      const block = toRosettaBlock(journal, { moves: byTransaction, leftOut: [] });
      checkReply({ block });
      const truth = truthOf(json);
      total += truth.length;
      rosetta = block;
      reply = encodeBlock(block).body;
      expect([SEED, height, await readBack(height)]).toEqual([SEED, height, truth]);
      // The same from a server that writes JSON in another way.
      const parsed: unknown = JSON.parse(reply.toString("utf8"));
      expect(parsed).toEqual(JSON.parse(JSON.stringify({ block })));
      reply = Buffer.from(JSON.stringify(parsed, undefined, 1));
      expect([SEED, height, await readBack(height)]).toEqual([SEED, height, truth]);
    }
    expect(total).toBeGreaterThan(BLOCKS);
  });
});
