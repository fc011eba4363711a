/**
 * What somebody pays to several recipients by contracts, with the wallet's key or with what the wallet has
 * allowed, on a real chain: coins that a contract forwards, tokens with many transfers, Cosmos messages.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { randomInt, randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { HDNodeWallet, Interface, Mnemonic } from "ethers";
import { type Address, parseAddress, toBech32 } from "../../../../chain/address.js";
import { createProgram } from "../../../../cli/program/program.js";
import { type LedgerDatabase, openLedger } from "../../../../ledger/database.js";
import { freezeRecovered } from "../../../../ledger/requests/recovered-payments.js";
import { grantLedgerRoles } from "../../../../ledger/roles.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { acceptWithdrawals, findWithdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";
import { signWithCosmJs } from "../../../helpers/cosmos/cosmjs.js";
import { createRandom } from "../../../helpers/random.js";
import {
  registerTestWallets,
  roleUrl,
  silentLog,
  TEST_PASSWORDS,
} from "../../../helpers/services/ledger.js";
import { copyTestDatabase } from "../../../helpers/services/postgres.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { callOf, createdAt, THIEF, TokenBench, TOKENS } from "../../tokens/token-bench.js";
import { freshAddress, requestOf, WALLET } from "../../../helpers/exchange/house.js";

const TOKEN = 10n ** 18n;
const { signal } = new AbortController();
const ALLOWING = createdAt(8);
const DISPERSE = createdAt(9);
const LISTED = [...TOKENS, { symbol: "ALLOW", contractAddress: ALLOWING, decimals: 0 }];

/** A second wallet, whose key CosmJS signs with. */
const PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow";
const COSMOS = parseAddress(
  HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PHRASE), "m/44'/60'/0'/0/0").address.toLowerCase(),
);

const ABI = new Interface([
  "function mint(address,uint256)",
  "function approve(address,uint256)",
  "function payOut(address[],uint256[]) payable",
  "function payTokens(address,address,address[],uint256[])",
]);

/** One recipient of one asset. */
interface Part {
  readonly to: Address;
  readonly units: bigint;
}

let bench: TokenBench;
let worker: LedgerDatabase;

beforeAll(async () => {
  bench = await TokenBench.open(undefined, LISTED);
  await registerTestWallets(bench.database, COSMOS);
  mkdirSync(join(bench.home, "config"), { recursive: true });
  writeFileSync(join(bench.home, "config", "hot-wallet.json"), JSON.stringify({ address: WALLET }));
  const phrase = Mnemonic.fromPhrase(`${"test ".repeat(11)}junk`);
  const xpub = HDNodeWallet.fromMnemonic(phrase, "m/44'/60'/0'/0").neuter().extendedKey;
  writeFileSync(join(bench.home, "config", "deposit.xpub"), `${xpub}\n`, { mode: 0o600 });
  const alice = await bench.register("alice");
  await bench.watch(LISTED);
  await bench.deploy();
  const compiled = compileFixture("Disperse.sol");
  await bench.mine([
    { data: String(compiled["AllowingToken"]?.bytecode) },
    { data: String(compiled["Disperse"]?.bytecode) },
  ]);
  await bench.mine([
    { to: ALLOWING, data: ABI.encodeFunctionData("mint", [alice, 1_000_000n]) },
    { to: ALLOWING, data: ABI.encodeFunctionData("mint", [WALLET, 1_000_000n]) },
    callOf("PlainToken", "mint", [alice, 1_000n]),
    callOf("PlainToken", "mint", [WALLET, 1_000n]),
    ...[alice, WALLET, COSMOS, DISPERSE].map((to) => ({ to, value: 10n * TOKEN })),
  ]);
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
  worker = await open(bench.ledger.ownerUrl, "worker");
});

afterAll(async () => {
  await worker.close();
  await bench.close();
});

function open(url: string, role: "worker" | "operator"): Promise<LedgerDatabase> {
  const genesisHash = bench.chain.chain.view.genesis().block.hash;
  const identity = { chainId: 6940n, genesisHash };
  return openLedger({ url: roleUrl(url, role), log: silentLog, signal, identity });
}

/** What somebody types. */
async function causeway(url: string, ...words: readonly string[]): Promise<string> {
  const lines: string[] = [];
  const print = (line: string) => void lines.push(line);
  const program = createProgram({
    version: "0",
    env: {
      DATABASE_URL: roleUrl(url, "operator"),
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: bench.chain.url,
    },
    signal,
    print,
    warn: print,
    setExitCode: () => undefined,
  });
  await program.parseAsync(["node", "causeway", ...words, "--home", bench.home]);
  return lines.join("\n");
}

const own = (...words: readonly string[]) =>
  causeway(bench.ledger.ownerUrl, ...words, "--reason", "paid by hand");

/** Requests of alice for these payments. */
async function ask(
  database: SqlDatabase,
  asset: string,
  parts: readonly Part[],
): Promise<readonly WithdrawalId[]> {
  const requests = parts.map(({ to, units: amountUnits }) =>
    requestOf({
      asset,
      amountUnits,
      destination: to,
      destinationText: to,
      idempotencyKey: randomUUID(),
    }),
  );
  const outcomes = await acceptWithdrawals(database, requests, ANY_REQUEST);
  return outcomes.map((outcome) => {
    if (outcome.outcome === "refused") throw new Error(outcome.refusal);
    return outcome.withdrawal.id;
  });
}

const statuses = (ids: readonly WithdrawalId[], database: SqlDatabase = bench.database) =>
  Promise.all(ids.map(async (id) => (await findWithdrawal(database, id))?.status));

const columns = (parts: readonly Part[]) => [
  parts.map(({ to }) => to),
  parts.map(({ units }) => units),
];

const payOut = (parts: readonly Part[], value: bigint) => ({
  from: THIEF,
  to: DISPERSE,
  data: ABI.encodeFunctionData("payOut", columns(parts)),
  value,
});

const payTokens = (parts: readonly Part[]) => ({
  to: DISPERSE,
  data: ABI.encodeFunctionData("payTokens", [ALLOWING, WALLET, ...columns(parts)]),
});

const approve = () => ({
  from: THIEF,
  to: ALLOWING,
  data: ABI.encodeFunctionData("approve", [DISPERSE, 1_000_000n]),
});

/** Two that are paid, one of them in two parts, and one that is not. */
function partsOf() {
  const [first, second, third] = [freshAddress(), freshAddress(), freshAddress()];
  const paid = [
    { to: first, units: 30n },
    { to: second, units: 20n },
    { to: first, units: 7n },
  ];
  const asked = [
    { to: first, units: 37n },
    { to: second, units: 20n },
    { to: third, units: 20n },
  ];
  return { paid, asked };
}

it("freezes what a contract has forwarded coins to, once its transaction is acknowledged", async () => {
  const { paid, asked } = partsOf();
  const ids = await ask(worker, "TOKEN", asked);
  await bench.mine([payOut(paid, 57n)]);
  await bench.caughtUp();
  await own("withdrawals", "release", "--accept-foreign");
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "accepted"]);
});

it("freezes what a contract has paid out of coins that lay there, which the wallet only called for", async () => {
  const { paid, asked } = partsOf();
  const ids = await ask(worker, "TOKEN", asked);
  const [hash = ""] = await bench.mine([payOut(paid, 0n)]);
  await bench.caughtUp();
  await own("ledger", "accept-outflow", hash);
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "accepted"]);
});

it("freezes what a call of a token with many transfers has paid", async () => {
  const { paid, asked } = partsOf();
  const ids = await ask(worker, "PLAIN", asked);
  // Of another asset it is another payment.
  const others = await ask(worker, "TOKEN", asked);
  await bench.mine([{ ...callOf("PlainToken", "transferMany", columns(paid)), from: THIEF }]);
  await bench.caughtUp();
  await own("withdrawals", "release", "--accept-foreign");
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "accepted"]);
  expect(await statuses(others)).toEqual(["accepted", "accepted", "accepted"]);
});

it("freezes what somebody else has paid with tokens that the wallet had allowed", async () => {
  const { paid, asked } = partsOf();
  const ids = await ask(worker, "ALLOW", asked);
  await bench.mine([approve()]);
  const [hash = ""] = await bench.mine([payTokens(paid)]);
  await bench.caughtUp();
  await own("withdrawals", "release", "--acknowledge", hash);
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "accepted"]);
});

it("gives no hold back of what such a payment may have paid before anybody has looked", async () => {
  const { paid, asked } = partsOf();
  const ids = await ask(worker, "ALLOW", asked);
  await bench.mine([{ ...payTokens(paid), from: THIEF }]);
  await bench.caughtUp();
  for (const id of ids) await own("withdrawals", "cancel", id);
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "cancelled"]);
  await own("withdrawals", "release", "--accept-foreign");
});

it("freezes what one Cosmos transaction has paid to several", async () => {
  const { paid, asked } = partsOf();
  const ids = await ask(worker, "TOKEN", asked);
  const coins = (amount: bigint) => [{ denom: "atoken", amount: amount.toString() }];
  const outputs = paid.map(({ to, units }) => ({ address: toBech32(to), coins: coins(units) }));
  const inputs = [{ address: toBech32(COSMOS), coins: coins(57n) }];
  const [signed] = signWithCosmJs(PHRASE, [
    {
      messages: [{ typeUrl: "/cosmos.bank.v1beta1.MsgMultiSend", value: { inputs, outputs } }],
      chainId: bench.chain.chain.genesis.cosmosChainId,
      sequence: 0,
      gas: 200_000,
      fee: coins(200_000n * 25_000_000n),
    },
  ]);
  if (signed === undefined) throw new Error("not signed");
  const { committed } = await bench.chain.mine([], [signed.raw]);
  await bench.online.indexed(committed.block.header.height);
  await bench.caughtUp();
  await own("withdrawals", "release", "--accept-foreign");
  expect(await statuses(ids)).toEqual(["frozen", "frozen", "accepted"]);
});

it("freezes exactly what random payments show, each movement and each sum", async () => {
  const seed = Number(process.env["SEED"] ?? randomInt(2 ** 31));
  const random = createRandom(seed);
  const people = Array.from({ length: 5 }, freshAddress);
  const paid = Array.from({ length: 12 }, () => ({
    to: random.pick(people),
    units: BigInt(1 + random.integer(9)),
  }));
  const asked = Array.from({ length: 60 }, () => ({
    to: random.pick(people),
    units: BigInt(1 + random.integer(40)),
  }));
  const isPaid = ({ to, units }: Part) => {
    const parts = paid.filter((part) => part.to === to).map((part) => part.units);
    return parts.includes(units) || parts.reduce((sum, each) => sum + each, 0n) === units;
  };
  const ids = await ask(worker, "ALLOW", asked);
  await bench.mine([{ ...payTokens(paid), from: THIEF }]);
  await bench.caughtUp();
  await own("withdrawals", "release", "--accept-foreign");
  const frozen = (await statuses(ids)).map((status) => status === "frozen");
  expect({ seed, frozen }).toEqual({ seed, frozen: asked.map(isPaid) });
});

it("freezes each request behind a recovery that found such payments, and books what they took", async () => {
  const { url, drop } = await copyTestDatabase(bench.ledger.ownerUrl);
  const coins = partsOf();
  const tokens = partsOf();
  const both = [payOut(coins.paid, 57n), { ...payTokens(tokens.paid), from: THIEF }];
  const hashes = await bench.mine(both);
  await bench.caughtUp();
  const genesisHash = bench.chain.chain.view.genesis().block.hash;
  const identity = { chainId: 6940n, genesisHash };
  const owner = await openLedger({ url, log: silentLog, signal, identity });
  // Rights of roles are rows of the database that was copied.
  await grantLedgerRoles(owner, TEST_PASSWORDS);
  await owner.close();
  await causeway(url, "recover", "--declare", "a backup");
  await causeway(url, "recover", "--apply");
  const restored = await open(url, "worker");
  const ids = [
    ...(await ask(restored, "TOKEN", coins.asked)),
    ...(await ask(restored, "ALLOW", tokens.asked)),
  ];
  await restored.transaction((tx) => freezeRecovered(tx, ids));
  const expected = ["frozen", "frozen", "accepted", "frozen", "frozen", "accepted"];
  expect(await statuses(ids, restored)).toEqual(expected);
  const booked = await restored.query(
    `SELECT p.asset, p.amount_units::text AS units FROM journal_entry e
       JOIN posting p ON p.journal_id = e.id
       JOIN recovered_payment r ON e.idem_key = 'recovered-payment:' || r.tx_hash
      WHERE r.tx_hash = ANY ($1) AND r.decision IS NULL AND p.debit = 'asset:recovered_payments' ORDER BY p.asset`,
    [hashes],
  );
  expect(booked).toEqual([
    { asset: "ALLOW", units: "57" },
    { asset: "TOKEN", units: "57" },
  ]);
  await restored.close();
  await drop();
});
