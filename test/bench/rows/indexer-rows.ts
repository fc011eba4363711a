/**
 * Rows of the indexer: catching up a chain of token transfers from an empty database, in blocks full
 * of transactions beside Ponder, and in blocks full of events, of which Ponder cannot hold one in
 * 4 GB; then its reads over what it has, and pages of the explorer over both.
 */
import { setTimeout } from "node:timers/promises";
import { Client } from "pg";
import { Interface } from "ethers";
import type { Address } from "../../../chain/address.js";
import { errorMessage } from "../../../chain/errors.js";
import { bytesToHex, hexToBytes } from "../../../chain/hex.js";
import { LIVE_SCHEMA } from "../../../indexer/store/schema.js";
import { compileSolidity } from "../../helpers/contracts/solidity.js";
import { until } from "../../helpers/until.js";
import {
  type BenchHome,
  createBenchHome,
  startPart,
  startPostgres,
} from "../targets/causeway-target.js";
import { tokenTransfer } from "../bench-token.js";
import { closedLoop, encodeRequest } from "../http-load.js";
import { blockNumber, callRpc } from "../json-rpc.js";
import { type BenchRow, formatFigure } from "../report.js";
import { installPonder, type PonderRun, runPonder } from "../targets/ponder-target.js";
import { type ScaledIndex, scaleIndex } from "../../helpers/indexer/scale.js";
import {
  createRecipients,
  createSenders,
  encodeBatch,
  type Payment,
  type Sender,
  signNext,
} from "../senders.js";

/** Names of the rows here, for `--only`. */
export const INDEXER_ROWS = ["indexer"] as const;

/** What the rows are run with. */
export interface IndexerRowsOptions {
  readonly quick: boolean;
  readonly readMs: number;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

/** Transfers that calls of the contract make, and of one such call. */
const EVENTS = { full: 1_000_000, quick: 200_000 };
const EVENTS_PER_CALL = 500;

/** Transactions of one transfer each. */
const TRANSACTIONS = { full: 200_000, quick: 15_000 };

/** Transfers that the tables get more, for reads of an index that has lived long. */
const SCALE = { full: 10_000_000, quick: 400_000 };

/** Accounts that hold the token. */
const HOLDERS = 20_000;
const FIRST_HOLDER = 0x1000000;

const SENDER_COUNT = 200;
const BATCH_SIZE = 100;
const CALL_GAS = 20_000_000n;
const READ_CONNECTIONS = 4;
const WAIT_TIMEOUT_MS = 600_000;
const LOOK_MS = 50;

/** What the project wants of ours / Ponder's. */
const AIM = { ratio: 5 };

/** An ERC-20 with a call that makes many transfers, each of them stored. */
const SOURCE = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Token {
  string public constant name = "Bench"; string public constant symbol = "BENCH"; uint8 public constant decimals = 18;
  uint256 public constant totalSupply = 1e30;
  mapping(address => uint256) public balanceOf;
  event Transfer(address indexed from, address indexed to, uint256 value);
  constructor(address[] memory all) { for (uint256 i = 0; i < all.length; i++) { balanceOf[all[i]] = 1e24; emit Transfer(address(0), all[i], 1e24); } }
  function transfer(address to, uint256 v) external returns (bool) { balanceOf[msg.sender] -= v; balanceOf[to] += v; emit Transfer(msg.sender, to, v); return true; }
  function many(uint160 first, uint256 n) external {
    unchecked { for (uint160 i = 0; i < n; i++) { balanceOf[msg.sender] -= 1; balanceOf[address(first + i)] += 1; emit Transfer(msg.sender, address(first + i), 1); } }
  }
}`;

/** Runs the rows over one chain. */
export async function runIndexerRows(options: IndexerRowsOptions): Promise<BenchRow[]> {
  const senders = createSenders(SENDER_COUNT, "indexer");
  const made = await createBenchHome({
    funded: senders.map(({ address }) => address),
    blockIntervalMs: 500,
  });
  const postgres = await startPostgres(made);
  const home = { ...made, databaseUrl: postgres.url };
  const node = await startPart(home, "node", options.profileFolder);
  try {
    const chain = { home, senders, token: await deploy(home.url("jsonRpc"), senders) };
    const { quick, say } = options;
    const url = home.url("jsonRpc");
    const transactions = quick ? TRANSACTIONS.quick : TRANSACTIONS.full;
    const recipients = createRecipients(SENDER_COUNT);
    await fill(chain, transactions, (index) => {
      return tokenTransfer(chain.token, recipients[index % recipients.length] ?? chain.token);
    });
    say(`the chain has ${transactions} transfers in ${await blockNumber(url)} blocks`);
    const title = "indexing transactions of a token transfer each";
    const before = await catchUp(home, title, "transactions/s", options);
    const beside = await besidePonder(chain, before, say);
    // The machine's speed is not the same for minutes: once on either side of Ponder.
    await emptyIndex(home);
    const behind = await catchUp(home, title, "transactions/s", options);
    const rows: BenchRow[] = [
      {
        ...beside,
        ours: 2 / (1 / before.ours + 1 / behind.ours),
        details: [...beside.details, ...behind.details],
      },
    ];
    const events = quick ? EVENTS.quick : EVENTS.full;
    const abi = new Interface(["function many(uint160,uint256)"]);
    await fill(chain, events / EVENTS_PER_CALL, (index) => {
      const first = FIRST_HOLDER + ((index * EVENTS_PER_CALL) % HOLDERS);
      const data = hexToBytes(abi.encodeFunctionData("many", [first, EVENTS_PER_CALL]));
      return { to: chain.token, valueAtoken: 0n, data, gasLimit: CALL_GAS };
    });
    say(`the chain has ${events} transfers more, in ${await blockNumber(url)} blocks`);
    rows.push(
      await catchUp(
        home,
        `indexing transfers, ${EVENTS_PER_CALL} a transaction`,
        "events/s",
        options,
      ),
    );
    rows.push(...(await reads(chain, options)));
    rows.push(...(await readsAtScale(chain, options)));
    return rows;
  } finally {
    await node.stop();
    await postgres.stop();
    home.remove();
  }
}

/** A home and the server that was started for it: another database is never asked, filled or emptied. */
interface ServedHome extends BenchHome {
  readonly databaseUrl: string;
}

interface Chain {
  readonly home: ServedHome;
  readonly senders: readonly Sender[];
  readonly token: Address;
}

async function deploy(url: string, senders: readonly Sender[]): Promise<Address> {
  const [owner] = senders;
  const { abi, bytecode } = compileSolidity({ "T.sol": SOURCE })["Token"] ?? {};
  if (owner === undefined || abi === undefined) throw new Error("no contract");
  const all = senders.map(({ address }) => address);
  const encoded = new Interface(abi).encodeDeploy([all]).slice(2);
  const data = hexToBytes(`${bytecode ?? "0x"}${encoded}`);
  const raw = signNext(owner, { to: undefined, valueAtoken: 0n, data, gasLimit: CALL_GAS });
  const hash = await callRpc<string>(url, "eth_sendRawTransaction", [bytesToHex(raw)]);
  await until(
    async () => (await callRpc<unknown>(url, "eth_getTransactionReceipt", [hash])) !== null,
    { timeoutMs: WAIT_TIMEOUT_MS, what: "the token is there" },
  );
  const made = await callRpc<{ contractAddress: Address }>(url, "eth_getTransactionReceipt", [
    hash,
  ]);
  return made.contractAddress;
}

/** Sends so many transactions and waits until all are mined. */
async function fill(
  { home, senders }: Chain,
  count: number,
  payment: (index: number) => Payment,
): Promise<void> {
  const url = home.url("jsonRpc");
  const last = new Map<Sender, bigint>();
  let index = 0;
  const next = (): Buffer | undefined => {
    if (index >= count) return undefined;
    const raws: Uint8Array[] = [];
    for (; raws.length < BATCH_SIZE && index < count; index += 1) {
      const sender = senders[index % senders.length];
      if (sender === undefined) throw new Error("no senders");
      raws.push(signNext(sender, payment(index)));
      last.set(sender, sender.nextNonce);
    }
    return encodeBatch(url, raws);
  };
  const check = ({ body }: { readonly body: Buffer }) => {
    if (body.includes('"error"')) throw new Error(body.toString("latin1").slice(0, 500));
  };
  await closedLoop({ url, connections: 1, next, check });
  for (const [{ address }, nonce] of last) {
    await until(
      async () =>
        BigInt(await callRpc<string>(url, "eth_getTransactionCount", [address, "latest"])) >= nonce,
      { timeoutMs: WAIT_TIMEOUT_MS, what: "all transactions are mined" },
    );
  }
}

/** The same transfers indexed by Ponder; whoever has another balance than it is named. */
async function besidePonder(
  { home, token }: Chain,
  ours: BenchRow,
  say: (line: string) => void,
): Promise<BenchRow> {
  const program = await installPonder(say);
  if (program === undefined) return ours;
  const url = home.databaseUrl;
  const rpcUrl = home.url("jsonRpc");
  const events = await transfersHere(url, token);
  const run = await runPonder(program, { rpcUrl, databaseUrl: url, token, events }).catch(
    (error: unknown) => {
      say(`NOT COMPARED with Ponder, which did not get through: ${errorMessage(error)}`);
      return undefined;
    },
  );
  if (run === undefined) return ours;
  await assertSameBalances(url, token, run);
  const peer = run.events / run.seconds;
  const detail =
    `Ponder ${run.version}: ${run.events} in ${formatFigure(run.seconds)} s, its processor time ` +
    `${formatFigure(run.cpuSeconds)} s; ${run.holders.size} balances are the same in both`;
  say(`${detail}; ${formatFigure(peer)} events/s`);
  return { ...ours, peer, peerName: "Ponder", aim: AIM, details: [...ours.details, detail] };
}

/** Nothing of the index is left. */
async function emptyIndex(home: ServedHome): Promise<void> {
  const client = new Client({ connectionString: home.databaseUrl });
  await client.connect();
  try {
    await client.query(`DROP SCHEMA ${LIVE_SCHEMA} CASCADE`);
  } finally {
    await client.end();
  }
}

/** Logs of the token in our index: all of them are transfers. */
async function transfersHere(url: string, token: Address): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT count(*)::integer AS n FROM indexer.log WHERE address = $1`,
      [hexToBytes(token)],
    );
    return Number(rows[0].n);
  } finally {
    await client.end();
  }
}

async function assertSameBalances(url: string, token: Address, run: PonderRun): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT '0x' || encode(address, 'hex') AS address, amount::text AS amount
         FROM indexer.balance WHERE asset = $1 AND amount > 0`,
      [hexToBytes(token)],
    );
    const differing = rows.filter(
      ({ address, amount }) => run.holders.get(String(address)) !== BigInt(amount),
    );
    if (differing.length > 0 || rows.length !== run.holders.size) {
      const [first] = differing;
      throw new Error(
        `${rows.length} balances here, ${run.holders.size} in Ponder, ${differing.length} differ: ` +
          `${String(first?.address)} has ${String(first?.amount)} here`,
      );
    }
  } finally {
    await client.end();
  }
}

/** Starts the indexer and waits until it has the head; what it wrote in which time. */
async function catchUp(
  home: ServedHome,
  title: string,
  unit: "events/s" | "transactions/s",
  { profileFolder, say }: IndexerRowsOptions,
): Promise<BenchRow> {
  const client = new Client({ connectionString: home.databaseUrl });
  await client.connect();
  const table = unit === "events/s" ? "log" : "transaction";
  const count = async () => {
    const { rows } = await client.query(
      `SELECT to_regclass('indexer.${table}') IS NOT NULL AS found`,
    );
    if (rows[0].found !== true) return 0;
    const counted = await client.query(`SELECT count(*)::integer AS n FROM indexer.${table}`);
    return Number(counted.rows[0].n);
  };
  const before = await count();
  const head = await blockNumber(home.url("jsonRpc"));
  const startMs = performance.now();
  const indexer = await startPart(home, "indexer", profileFolder);
  await until(
    async () => {
      const reply = await fetch(`${home.url("indexer")}/v1/status`);
      const body = (await reply.json()) as { meta?: { indexedHeight: number } };
      return (body.meta?.indexedHeight ?? -1) >= head || pause();
    },
    { timeoutMs: WAIT_TIMEOUT_MS, what: "the indexer is at the head" },
  );
  const seconds = (performance.now() - startMs) / 1_000;
  const cpuSeconds = indexer.cpuSeconds();
  const written = (await count()) - before;
  await until(
    async () => {
      const reply = await fetch(`${home.url("indexer")}/v1/status`);
      const body = (await reply.json()) as { status?: { unverifiedBalances: number } };
      return (body.status?.unverifiedBalances ?? 1) < HOLDERS / 4 || pause();
    },
    { timeoutMs: WAIT_TIMEOUT_MS, what: "balances are held against state" },
  );
  const checkedSeconds = (performance.now() - startMs) / 1_000;
  await indexer.stop();
  await client.end();
  const details = [
    `${written} in ${formatFigure(seconds)} s from the start of the process, its processor time ` +
      `${formatFigure(cpuSeconds ?? 0)} s; balances held against state after ${formatFigure(checkedSeconds)} s`,
  ];
  say(`${title}: ${formatFigure(written / seconds)} ${unit}; ${details.join("")}`);
  return { title, unit, ours: written / seconds, details };
}

/** Between two looks: an answer is some milliseconds of the work of whom is measured. */
async function pause(): Promise<false> {
  await setTimeout(LOOK_MS);
  return false;
}

/** Reads of an index that has lived long. */
async function readsAtScale(
  { home, token }: Chain,
  options: IndexerRowsOptions,
): Promise<BenchRow[]> {
  const client = new Client({ connectionString: home.databaseUrl });
  await client.connect();
  const transfers = options.quick ? SCALE.quick : SCALE.full;
  let index: ScaledIndex;
  try {
    index = await scaleIndex({ client, token, transfers, say: options.say });
  } finally {
    await client.end();
  }
  const indexer = await startPart(home, "indexer", options.profileFolder);
  let turn = 0;
  const account = () => index.accountAt(turn++ * 7_919);
  const size = `of ${formatFigure(transfers)} transfers`;
  try {
    return await readRows({ ...options, name: "indexer", url: home.url("indexer") }, [
      [`transfers of an account, ${size}`, () => `/v1/addresses/${account()}/transfers`],
      [`transactions of an account, ${size}`, () => `/v1/addresses/${account()}/transactions`],
      [`balances of an account, ${size}`, () => `/v1/addresses/${account()}/balances`],
      [`holders of a token, ${size}`, () => `/v1/tokens/${token}/holders`],
      [`transfers of a token, ${size}`, () => `/v1/tokens/${token}/transfers`],
    ]);
  } finally {
    await indexer.stop();
  }
}

async function reads(chain: Chain, options: IndexerRowsOptions): Promise<BenchRow[]> {
  const { home, senders, token } = chain;
  const indexer = await startPart(home, "indexer", options.profileFolder);
  let turn = 0;
  const holder = () => holderAt(turn++ * 7_919);
  const sender = () => senders[turn++ % senders.length]?.address ?? token;
  const url = home.url("indexer");
  try {
    const rows = await readRows({ ...options, name: "indexer", url }, [
      ["transfers of an account with thousands", () => `/v1/addresses/${sender()}/transfers`],
      ["transfers of an account with some", () => `/v1/addresses/${holder()}/transfers`],
      ["balances of an account", () => `/v1/addresses/${holder()}/balances`],
      ["balances of an account in the past", () => `/v1/addresses/${sender()}/balances?at=20`],
      ["holders of a token", () => `/v1/tokens/${token}/holders`],
      ["transfers of a token", () => `/v1/tokens/${token}/transfers`],
    ]);
    return [...rows, ...(await pages(chain, options))];
  } finally {
    await indexer.stop();
  }
}

/** Pages of the explorer, over the node and the indexer that run. */
async function pages({ home, token }: Chain, options: IndexerRowsOptions): Promise<BenchRow[]> {
  const explorer = await startPart(home, "explorer", options.profileFolder);
  const rpcUrl = home.url("jsonRpc");
  const small = await transactionFrom(rpcUrl, 5);
  const large = await lastTransaction(rpcUrl, "latest");
  const url = home.url("explorer");
  let turn = 0;
  try {
    return await readRows({ ...options, name: "explorer", url }, [
      ["a page that is kept: the first", () => "/"],
      ["a page that is kept: a block", () => "/block/5"],
      ["a page that is kept: a transaction", () => `/tx/${small}`],
      [`a page that is kept: one of ${EVENTS_PER_CALL} transfers`, () => `/tx/${large}`],
      ["a page that is kept: a token", () => `/token/${token}`],
      ["pages that nobody asked for yet: accounts", () => `/address/${holderAt(turn++)}`],
    ]);
  } finally {
    await explorer.stop();
  }
}

/** The last transaction of the first block from this one on that has any. */
async function transactionFrom(url: string, height: number): Promise<string> {
  const tag = `0x${height.toString(16)}`;
  const block = await callRpc<{ transactions: string[] }>(url, "eth_getBlockByNumber", [
    tag,
    false,
  ]);
  return block.transactions.at(-1) ?? transactionFrom(url, height + 1);
}

/** The last transaction of the newest block up to this one that has any. */
async function lastTransaction(url: string, tag: string): Promise<string> {
  const block = await callRpc<{ number: string; transactions: string[] }>(
    url,
    "eth_getBlockByNumber",
    [tag, false],
  );
  const hash = block.transactions.at(-1);
  return hash ?? lastTransaction(url, `0x${(BigInt(block.number) - 1n).toString(16)}`);
}

/** One of the accounts that hold the token. */
const holderAt = (turn: number) =>
  `0x${(FIRST_HOLDER + (turn % HOLDERS)).toString(16).padStart(40, "0")}`;

/** Requests in a closed loop to each of these paths. */
async function readRows(
  { url, name, readMs, say }: IndexerRowsOptions & { readonly url: string; readonly name: string },
  paths: readonly (readonly [title: string, path: () => string])[],
): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const [title, path] of paths) {
    const next = () => encodeRequest(url, { method: "GET", path: path() });
    const loop = { url, connections: READ_CONNECTIONS, durationMs: readMs, next };
    const { perSecond, p50Ms, p99Ms } = await closedLoop(loop);
    const details = [`p50 ${formatFigure(p50Ms)} ms, p99 ${formatFigure(p99Ms)} ms`];
    say(`${name}: ${title}: ${formatFigure(perSecond)}/s, ${details.join("")}`);
    rows.push({ title: `${name}: ${title}`, unit: "requests/s", ours: perSecond, details });
  }
  return rows;
}
