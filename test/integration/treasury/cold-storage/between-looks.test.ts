/** Bands while a worker goes on between two looks of the treasury: what customers take is counted once. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { drainWallet, registerWallets } from "../../../../ledger/wallets/wallet-registry.js";
import { freezeWithdrawals } from "../../../../ledger/withdrawals/slot-outcomes.js";
import { createHotWallet } from "../../../../ledger/wallets/wallet-lease.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { acceptWithdrawals } from "../../../../ledger/withdrawals/withdrawals.js";
import { createEvmClient, type EvmClient } from "../../../../rpc-client/evm-client.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { createLaneGuard } from "../../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../../withdrawal-worker/lane/lane-ledger.js";
import type { WalletNode } from "../../../../withdrawal-worker/lane/wallet-node.js";
import { errorLog, silentLog } from "../../../helpers/services/ledger.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { callOf } from "../../tokens/token-bench.js";
import { requestOf, WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, PRICE, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;

/** Of its coins a wallet keeps the fees of a thousand transfers. */
const KEPT = 1_000n * 21_000n * PRICE;

const coldAddress = parseAddress(`0x${"c1".repeat(20)}`);

/** A wallet that takes over. */
const SECOND = parseAddress(`0x${"5e".repeat(20)}`);

/** What a node says of payments to whose blocks it has not come. */
const NOTHING_YET = { height: 1, byHash: new Map(), untold: new Map() };

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 4n * ONE }]);
  await bench.mine();
});
afterEach(() => bench.close());

/** What is above `targetUnits` goes to cold storage; nothing is swept. */
function keep(asset: string, targetUnits: bigint, lowUnits = 0n): void {
  const band = { lowUnits, targetUnits, highUnits: targetUnits };
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress, band };
  bench.files.policy = bench.policyOf({ assets: { [asset]: rules } });
}

async function ask(asset: string, amountUnits: bigint): Promise<WithdrawalId> {
  const customerId = parseCustomerId("alice");
  const request = requestOf({ customerId, asset, amountUnits });
  const [answer] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  if (answer?.outcome !== "accepted") throw new Error(`it is ${answer?.outcome}`);
  return answer.withdrawal.id;
}

/** A round of the treasury in which something else happens behind a question to the chain, once. */
async function roundWith(
  method: "eth_getTransactionCount" | "tokenBalances",
  happens: () => Promise<unknown>,
): Promise<void> {
  const client = createEvmClient(bench.bench.rpc);
  let isOver = false;
  const once = async <T>(answer: Promise<T>): Promise<T> => {
    const answered = await answer;
    if (!isOver) {
      isOver = true;
      await happens();
    }
    return answered;
  };
  const evm: EvmClient = {
    ...client,
    tokenBalances: (reads, options) => {
      const answer = client.tokenBalances(reads, options);
      const isOfWallet = reads.some(({ account }) => account === WALLET);
      return method === "tokenBalances" && isOfWallet ? once(answer) : answer;
    },
  };
  const rpc: JsonRpcClient = {
    ...bench.bench.rpc,
    batch: (calls, options) => {
      const answer = bench.bench.rpc.batch(calls, options);
      const isOfWallet = calls.some((call) => call.method === method && call.params[0] === WALLET);
      return isOfWallet ? once(answer) : answer;
    },
  };
  await bench.sweeper({ evm, rpc }).round(signal);
  expect(isOver).toBe(true);
}

/** Units that went, or are to go, to cold storage. */
async function stored(): Promise<string[]> {
  const rows = await bench.bench.ledger.owner.query<{ amount: string }>(
    `SELECT amount_units::text AS amount FROM treasury_move WHERE kind = 'cold' ORDER BY id`,
  );
  return rows.map(({ amount }) => amount);
}

it("leaves in the hot wallet the coins of a payment that gets its nonce meanwhile", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: 3n * ONE }]);
  await bench.mine();
  await bench.mine();
  await bench.lane.runRound(signal);
  keep("TOKEN", ONE);
  await ask("TOKEN", 2n * ONE);
  await roundWith("eth_getTransactionCount", () => bench.lane.runRound(signal));
  // Reserved is its fee, too.
  expect(await stored()).toEqual([`${ONE - KEPT - 25_200n * PRICE}`]);
});

it("counts what is reserved by the very block of the balances, whichever node answers", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: 3n * ONE }]);
  await bench.mine();
  await bench.mine();
  await ask("TOKEN", 2n * ONE);
  // It has its nonce, and no block has it yet.
  await bench.lane.runRound(signal);
  await bench.lane.runRound(signal);
  keep("TOKEN", ONE);
  // Another node behind the balancer has another block of that height, in which it was mined.
  const isOther = (params: readonly unknown[]) =>
    params[0] === WALLET && /^0x[0-9a-f]+$/u.test(String(params[1]));
  const rpc: JsonRpcClient = {
    ...bench.bench.rpc,
    request: async (method, params, options) =>
      method === "eth_getTransactionCount" && isOther(params)
        ? "0x1"
        : bench.bench.rpc.request(method, params, options),
  };
  await bench.sweeper({ rpc, evm: createEvmClient(rpc) }).round(signal);
  expect(await stored()).toEqual([`${ONE - KEPT - 25_200n * PRICE}`]);
});

it.each([
  ["cancelled", "no wallet has it any more", 0n],
  ["frozen", "the chain may have paid it behind the ledger's back", 1n],
])("has a move to cold storage %s where %s", async (status, _why, lostNonces) => {
  await bench.lane.runRound(signal);
  keep("TOKEN", ONE);
  await bench.sweeper().round(signal);
  expect(await stored()).toHaveLength(1);
  const { owner } = bench.bench.ledger;
  await owner.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(`UPDATE treasury_move SET created_at = created_at - interval '10 minutes'`);
  });
  // What the wallet had is gone, by a transaction whose nonce a standby may lack.
  const rpc: JsonRpcClient = {
    ...bench.bench.rpc,
    batch: async (calls, options) => {
      const answers = await bench.bench.rpc.batch(calls, options);
      return answers.map((answer, index) => {
        const call = calls[index];
        const isOfWallet = call?.method === "eth_getBalance" && call.params[0] === WALLET;
        return isOfWallet ? { ok: true as const, result: "0x0" } : answer;
      });
    },
  };
  const view: WalletNode["view"] = async (...asked) => {
    const seen = await bench.node.view(...asked);
    return { ...seen, pendingNonce: seen.pendingNonce + lostNonces };
  };
  const errors: Record<string, unknown>[] = [];
  const parts = { rpc, node: { ...bench.node, view }, log: errorLog(errors) };
  await bench.sweeper(parts).round(signal);
  const rows = await owner.query<{ id: string; status: string }>(
    `SELECT id, status FROM withdrawal`,
  );
  expect(rows.map((row) => row.status)).toEqual([status]);
  // A person has to look at what froze; one that is given up is decided anew.
  const told = {
    msg: "a move to cold storage is frozen",
    asset: "TOKEN",
    withdrawal: rows[0]?.id,
    status: "frozen",
    reason: "no wallet has what was to go to cold storage",
  };
  const isOfMove = ({ withdrawal }: Record<string, unknown>) => withdrawal !== undefined;
  expect(errors.filter(isOfMove)).toEqual(status === "frozen" ? [told] : []);
});

it("leaves in the hot wallet the coins of a request that is frozen without a nonce", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: 3n * ONE }]);
  await bench.mine();
  await bench.mine();
  await bench.lane.runRound(signal);
  const id = await ask("TOKEN", 2n * ONE);
  await freezeWithdrawals(bench.worker, [{ id, reason: "the ledger comes from a backup" }]);
  keep("TOKEN", ONE);
  await bench.sweeper().round(signal);
  expect(await stored()).toEqual([`${ONE - KEPT}`]);
});

it("leaves in the hot wallet the units of a payment that is settled meanwhile", async () => {
  const alice = await bench.bench.register("alice");
  const send = (to: string, units: bigint) => callOf("PlainToken", "mint", [to, units]);
  await bench.bench.mine([send(alice, 300n), send(WALLET, 1_000n)]);
  await bench.mine();
  await bench.mine();
  keep("PLAIN", 700n);
  await ask("PLAIN", 300n);
  await bench.lane.runRound(signal);
  await roundWith("tokenBalances", async () => {
    for (let round = 0; round < 3; round += 1) {
      await bench.mine();
      bench.house.clock.ms += 3_000;
      await bench.lane.runRound(signal);
    }
  });
  expect(await bench.units(WALLET, "PLAIN")).toBe(700n);
  expect(await stored()).toEqual([]);
});

it("keeps no units in other wallets for a payment that a wallet without a key is to make", async () => {
  const alice = await bench.bench.register("alice");
  const send = (to: string, units: bigint) => callOf("PlainToken", "mint", [to, units]);
  await bench.bench.mine([send(alice, 300n), send(WALLET, 300n), send(SECOND, 1_000n)]);
  await bench.mine();
  await bench.mine();
  await ask("PLAIN", 300n);
  await bench.lane.runRound(signal);
  const { owner } = bench.bench.ledger;
  const word = { operator: "ann", reason: "its key is lost" };
  await registerWallets(owner, [{ address: SECOND, label: "second", ...word }]);
  await createHotWallet(owner, { wallet: SECOND, firstNonce: 0n });
  await owner.query(
    `UPDATE hot_wallet SET seen_balance_atoken = 0, seen_height = 1 WHERE wallet = $1`,
    [SECOND],
  );
  await drainWallet(owner, WALLET, word);
  keep("PLAIN", 700n);
  bench.wallets = [SECOND];
  await bench.sweeper().round(signal);
  expect(await stored()).toEqual(["300"]);
});

it("asks for no refill over a payment of units that is mined and not settled yet", async () => {
  const alice = await bench.bench.register("alice");
  const send = (to: string, units: bigint) => callOf("PlainToken", "mint", [to, units]);
  await bench.bench.mine([send(alice, 300n), send(WALLET, 1_000n)]);
  await bench.mine();
  await bench.mine();
  keep("PLAIN", 700n, 700n);
  await ask("PLAIN", 300n);
  await bench.lane.runRound(signal);
  const refills = () => bench.bench.ledger.owner.query(`SELECT state FROM refill_request`);
  await bench.sweeper().round(signal);
  expect([await bench.units(WALLET, "PLAIN"), await stored(), await refills()]).toEqual([
    1_000n,
    [],
    [],
  ]);
  await bench.mine();
  await bench.sweeper().round(signal);
  expect([await bench.units(WALLET, "PLAIN"), await stored(), await refills()]).toEqual([
    700n,
    [],
    [],
  ]);
});

it("asks for no refill over a payment of coins that is mined and not settled yet", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: 3n * ONE }]);
  await bench.mine();
  await bench.mine();
  const band = { lowUnits: ONE, targetUnits: ONE, highUnits: 10n * ONE };
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress, band };
  bench.files.policy = bench.policyOf({ assets: { TOKEN: rules } });
  await ask("TOKEN", 2n * ONE);
  // Another node has to show the receipt, and has not come to its block.
  const lane = new Lane(
    {
      ...bench.house.context(),
      signer: bench.laneSigner,
      policy: { current: async () => bench.files.policy },
      ledger: createLaneLedger(bench.worker),
      guard: createLaneGuard({ database: bench.worker, wallet: WALLET, log: silentLog }),
      node: bench.node,
      secondNode: { ...bench.node, receipts: async () => NOTHING_YET },
      chainId: 6940n,
    },
    "worker",
  );
  await lane.runRound(signal);
  await bench.mine();
  bench.house.clock.ms += 3_000;
  await lane.runRound(signal);
  const { owner } = bench.bench.ledger;
  expect(await owner.query(`SELECT status FROM withdrawal`)).toEqual([{ status: "included" }]);
  await bench.sweeper().round(signal);
  expect(await bench.units(WALLET)).toBeGreaterThan(ONE + KEPT);
  expect([await stored(), await owner.query(`SELECT state FROM refill_request`)]).toEqual([[], []]);
});

it("asks for a refill in a round that lasts longer than a block in which a payout is mined", async () => {
  const alice = await bench.bench.register("alice");
  const send = callOf("PlainToken", "mint", [alice, 300n]);
  await bench.bench.mine([{ to: alice, value: 3n * ONE }, send]);
  await bench.mine();
  await bench.mine();
  const band = { lowUnits: 10n * ONE, targetUnits: 10n * ONE, highUnits: 20n * ONE };
  const coins = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress, band };
  bench.files.policy = bench.policyOf({ assets: { TOKEN: coins, PLAIN: ANY_SWEEP } });
  await ask("TOKEN", 2n * ONE);
  await bench.lane.runRound(signal);
  let isOver = false;
  const estimate: WalletNode["estimate"] = async (...asked) => {
    const answer = await bench.node.estimate(...asked);
    if (!isOver) {
      isOver = true;
      await bench.mine();
      bench.house.clock.ms += 3_000;
      await bench.lane.runRound(signal);
    }
    return answer;
  };
  await bench.sweeper({ node: { ...bench.node, estimate } }).round(signal);
  const { owner } = bench.bench.ledger;
  const mined = await owner.query(`SELECT 1 FROM nonce_slot WHERE mined_hash IS NOT NULL`);
  expect(mined).toHaveLength(1);
  expect(
    await owner.query(`SELECT state, amount_units::text AS amount FROM refill_request`),
  ).toEqual([{ state: "open", amount: `${10n * ONE - (await bench.units(WALLET)) + KEPT}` }]);
});
