/** `causeway withdrawals`: what an operator sees, freezes and releases, with the chain's proof. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { bytesToHex, parseHash32 } from "../../../../chain/hex.js";
import { signLegacy } from "../../../../chain/transaction.js";
import type { LedgerCommand } from "../../../../cli/ledger/ledger-tools.js";
import {
  runCancelWithdrawal,
  runFreezeWithdrawals,
  runListWithdrawals,
  runShowWithdrawal,
} from "../../../../cli/commands/withdrawals/withdrawals.js";
import {
  type ReleaseOptions,
  runReleaseWithdrawals,
} from "../../../../cli/commands/withdrawals/release.js";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { releaseWithdrawal } from "../../../../ledger/withdrawals/release/release.js";
import { freezeWithdrawals } from "../../../../ledger/withdrawals/slot-outcomes.js";
import { releaseWithForeignNonce } from "../../../../ledger/withdrawals/foreign-transactions.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { roleUrl, standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { policyOf } from "../../policy/terms.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
  WALLET_KEY,
} from "../../../helpers/exchange/house.js";

let house: House;
let home: string;

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "causeway-release-"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: WALLET }));
});

afterEach(async () => {
  rmSync(home, { recursive: true, force: true });
});

const printed: string[] = [];

function command(json = false): LedgerCommand {
  printed.length = 0;
  return {
    home,
    portOffset: 0,
    json,
    env: {
      DATABASE_URL: roleUrl(house.ledger.owner.url, "operator"),
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: house.chain.url,
    },
    signal: house.signal,
    print: (text) => void printed.push(text),
  };
}

const release = (options: ReleaseOptions = {}) => runReleaseWithdrawals(command(), options);

/** An operator's word about transactions nobody asked for. */
const looked = (...acknowledge: string[]) => ({ acknowledge, reason: "the key is rotated" });

/** Someone else uses the hot wallet's key. */
async function sendForeign(fields: { nonce: bigint; to?: Address; valueAtoken?: bigint }) {
  const raw = signLegacy(
    {
      chainId: FAKE_CHAIN_ID,
      nonce: fields.nonce,
      gasPriceAtoken: 30_000_000n,
      gasLimit: 21_000n,
      to: fields.to ?? freshAddress(),
      valueAtoken: fields.valueAtoken ?? 5n,
      data: new Uint8Array(0),
    },
    WALLET_KEY,
  );
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_sendRawTransaction",
    params: [bytesToHex(raw)],
  };
  const answer = await fetch(house.chain.url, { method: "POST", body: JSON.stringify(call) });
  const { result } = (await answer.json()) as { result: string };
  return result;
}

/** A withdrawal whose nonce a foreign transaction consumed. */
async function frozenByForeign(foreign: { sameAs?: boolean } = {}) {
  const to = freshAddress();
  const { id } = await house.accept({ destination: to, destinationText: to });
  const lane = house.lane();
  house.chain.wireFault = (methods) =>
    methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
  await expect(lane.runRound(house.signal)).rejects.toThrow();
  house.chain.wireFault = () => undefined;
  const target = foreign.sameAs === true ? { to, valueAtoken: TOKEN } : {};
  const hash = await sendForeign({ nonce: 0n, ...target });
  house.chain.mine();
  for (let round = 0; round < 2; round++) {
    await lane.runRound(house.signal);
    house.clock.ms += 5_000;
  }
  expect((await house.read(id)).status).toBe("frozen");
  return { id, lane, hash, to };
}

describe("causeway withdrawals", () => {
  it("lists and shows withdrawals, and freezes and releases signing", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    expect(await runListWithdrawals(command(), {})).toBe(0);
    expect(printed.join("\n")).toContain(`${id} broadcast alice 1 TOKEN`);
    expect(await runListWithdrawals(command(true), { status: "settled" })).toBe(0);
    expect(JSON.parse(printed.join(""))).toMatchObject({ withdrawals: [] });
    expect(await runShowWithdrawal(command(), id)).toBe(0);
    expect(printed.join("\n")).toContain("nonce 0");
    expect(await runShowWithdrawal(command(), "wd_none")).toBe(1);
    await expect(runListWithdrawals(command(), { status: "odd" })).rejects.toThrow("--status");
    expect(await runFreezeWithdrawals(command(), { reason: "looking" })).toBe(0);
    expect(await runListWithdrawals(command(), {})).toBe(1);
    expect(printed[0]).toContain("FROZEN");
    expect(printed[0]).toContain("looking");
    const waiting = await house.accept();
    await lane.runRound(house.signal);
    expect((await house.read(waiting.id)).status).toBe("accepted");
    expect(await release()).toBe(0);
    await lane.runRound(house.signal);
    expect((await house.read(waiting.id)).status).toBe("broadcast");
  });

  it("does not end well while the kill switch stops what it has let go on", async () => {
    await runFreezeWithdrawals(command(), { reason: "looking" });
    const word = { reason: "drill", by: "ann" };
    await setKillSwitch(house.ledger.owner, { level: "stop-sign", ...word });
    expect(await release()).toBe(1);
    expect(printed).toEqual([
      "signing is released",
      expect.stringMatching(/^STILL FROZEN: kill switch stop-sign: drill.*killswitch lift/),
      expect.stringMatching(/is FROZEN since .*: kill switch stop-sign: drill/),
    ]);
    // It stops no signature.
    await setKillSwitch(house.ledger.owner, { level: "stop-new", ...word });
    expect(await release()).toBe(0);
  });

  it("lists and freezes while the node is down", async () => {
    const { id } = await house.accept();
    await house.lane().runRound(house.signal);
    house.chain.wireFault = () => "reset-before";
    expect(await runListWithdrawals(command(), {})).toBe(0);
    expect(printed.join("\n")).toContain(id);
    expect(await runFreezeWithdrawals(command(), {})).toBe(0);
    expect(await house.isFrozen()).toBe(true);
    await expect(release()).rejects.toThrow();
    expect(await house.isFrozen()).toBe(true);
  });

  it("gives a withdrawal a second nonce only with the transaction that consumed the first", async () => {
    const { id, lane, to } = await frozenByForeign();
    expect(await release()).toBe(0);
    expect((await house.read(id)).status).toBe("accepted");
    const proof = await house.database.query(
      `SELECT outcome, mined_hash IS NOT NULL AS proven FROM nonce_slot WHERE nonce = 0`,
    );
    expect(proof).toEqual([{ outcome: "foreign", proven: true }]);
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const paid = await house.read(id);
    expect(paid.status).toBe("settled");
    expect(paid.nonce).toBe(1n);
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });

  it("pays it within the wallet's limit, which the nonce that was taken counts nothing towards", async () => {
    house.files.policy = policyOf({
      limits: [{ by: "wallet", window: "day", maxUnits: TOKEN, maxCount: 1 }],
    });
    const { id, lane, to } = await frozenByForeign();
    expect(await release()).toBe(0);
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 1n });
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    // This one counts.
    const late = await house.accept();
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    expect((await house.read(late.id)).reason).toContain("wallet's limit");
  });

  it("does not pay what was cancelled while it was frozen, and gives its hold back", async () => {
    const before = await house.balance("alice");
    const { id, lane, to } = await frozenByForeign();
    expect(await cancelWithdrawal(house.database, id, "changed my mind")).toBe("done");
    expect(await cancelWithdrawal(house.database, id, "another word")).toBe("done");
    // It may have been paid: only a person ends it.
    expect((await house.read(id)).status).toBe("frozen");
    expect(await release()).toBe(0);
    expect(await house.read(id)).toMatchObject({ status: "cancelled", reason: "changed my mind" });
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
    expect(await house.balance("alice")).toEqual(before);
  });

  it("has its nonce waited for anew: no block could have it while a person looked", async () => {
    const lane = house.lane();
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
    const { id, to } = await house.acceptTo();
    await lane.runRound(house.signal).catch(() => undefined);
    await freezeWithdrawals(house.database, [{ id, reason: "looked at by a person" }]);
    house.chain.wireFault = () => undefined;
    await house.pass(lane, { rounds: 3, stepMs: 300_000 });
    expect((await house.read(id)).status).toBe("frozen");
    expect(await release()).toBe(0);
    await house.pass(lane, { rounds: 1, stepMs: 2_000 });
    expect(await house.read(id)).toMatchObject({ status: "settled", nonce: 0n });
    expect(house.chain.balances.get(to)).toBe(TOKEN);
  });

  it("does not send what is cancelled while the release looks at the chain", async () => {
    const lane = house.lane();
    house.chain.gasPriceAtoken = 1n;
    house.chain.minimumPriceAtoken = 10n;
    const { id, to } = await house.acceptTo();
    await lane.runRound(house.signal);
    await freezeWithdrawals(house.database, [{ id, reason: "looked at by a person" }]);
    const cancel = () => cancelWithdrawal(house.database, id, "changed my mind");
    const report = await releaseWithdrawal(
      {
        database: house.ledger.owner,
        wallet: WALLET,
        chainOf: () => ({
          headHeight: async () => house.chain.head,
          // Its client is told that it will not be paid, in the very moment of the release.
          nonceAt: async () => ((await cancel()) === "done" ? 0n : -1n),
          receipts: async (hashes) => hashes.map(() => undefined),
          transactions: async () => [],
        }),
        paymentOf: async () => undefined,
      },
      id,
      { decision: "look-again" },
    );
    expect(report.steps).toEqual([{ step: "slot-resumed", id, nonce: 0n }]);
    expect((await house.read(id)).status).toBe("cancelling");
    house.chain.minimumPriceAtoken = 1n;
    await house.pass(lane, { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("cancelled");
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
  });

  it("settles what was cancelled while it was frozen, where the chain shows that it was paid", async () => {
    const { id, lane, hash, to } = await frozenByForeign({ sameAs: true });
    expect(await cancelWithdrawal(house.database, id, "changed my mind")).toBe("done");
    expect(await release({ id, paidBy: hash })).toBe(0);
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    expect(await cancelWithdrawal(house.database, id, "too late")).toBe("mined");
  });

  it("closes no slot of a withdrawal whose receipt is recorded at the same moment", async () => {
    const { id, hash } = await frozenByForeign();
    const { owner } = house.ledger;
    const [slot] = await house.context().ledger.readLiveSlots({
      wallet: WALLET,
      statuses: ["frozen"],
      limit: 1,
    });
    const proof = {
      slotId: slot?.slotId ?? "",
      withdrawalId: id,
      foreignHash: parseHash32(hash),
      blockNumber: house.chain.head,
    };
    let released: Promise<boolean> | undefined;
    await standing(owner, async (tx) => {
      await tx.query(`UPDATE withdrawal SET status = 'included' WHERE id = $1`, [id]);
      released = releaseWithForeignNonce(owner, proof);
      // Asked outside: a transaction is shown for its whole time the sessions that it saw first.
      const waiting = `SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      await until(async () => (await owner.query(waiting)).length > 0, {
        timeoutMs: 10_000,
        what: "the release waits for the receipt",
      });
    });
    expect(await released).toBe(false);
    const rows = await owner.query(`SELECT outcome, mined_hash FROM nonce_slot WHERE id = $1`, [
      proof.slotId,
    ]);
    expect(rows).toEqual([{ outcome: null, mined_hash: null }]);
    expect((await house.read(id)).status).toBe("included");
  });

  it("keeps it frozen without that proof", async () => {
    const { id } = await frozenByForeign();
    house.chain.override = (method) =>
      method === "causeway_getAccountJournal" ? { result: { entries: [], next: null } } : undefined;
    expect(await release()).toBe(1);
    expect((await house.read(id)).status).toBe("frozen");
    expect(printed.join("\n")).toContain("nothing shows who consumed nonce 0");
  });

  it("does not pay again what the foreign transaction may have paid, but takes it over", async () => {
    const { id, lane, hash, to } = await frozenByForeign({ sameAs: true });
    expect(await release()).toBe(1);
    expect((await house.read(id)).status).toBe("frozen");
    expect(printed.join("\n")).toContain(`--paid-by ${hash}`);
    expect(await release({ id, paidBy: hash })).toBe(0);
    await lane.runRound(house.signal);
    const settled = await house.read(id);
    expect(settled.status).toBe("settled");
    expect(settled.txHash).toBe(hash);
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    expect(house.chain.nonces.get(WALLET)).toBe(1n);
  });

  it("after a restored backup names the unknown payments and pays none of them twice", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    const to = freshAddress();
    // The backup knows this request as waiting; before the loss it had been paid with nonce 0.
    const paid = await house.accept({ destination: to, destinationText: to });
    const other = await house.accept();
    const hash = await sendForeign({ nonce: 0n, to, valueAtoken: TOKEN });
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await house.isFrozen()).toBe(true);
    expect(await release()).toBe(1);
    expect(printed.join("\n")).toContain(hash);
    expect(await house.isFrozen()).toBe(true);
    expect(await release(looked(hash))).toBe(1);
    expect((await house.read(paid.id)).status).toBe("frozen");
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const settled = await house.read(other.id);
    expect(settled.status).toBe("settled");
    expect(settled.nonce).toBe(1n);
    expect(await release({ id: other.id, paidBy: hash }).catch(() => "refused")).toBe("refused");
    expect(await release({ id: paid.id, paidBy: hash })).toBe(0);
    await lane.runRound(house.signal);
    expect((await house.read(paid.id)).status).toBe("settled");
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    const spent = 1_000n * TOKEN - (house.chain.balances.get(WALLET) ?? 0n);
    expect(100n * TOKEN - (await house.accountAtoken(`asset:wallet:${WALLET}`))).toBe(spent);
  });

  it("pays what an operator says was never paid", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    const to = freshAddress();
    const { id } = await house.accept({ destination: to, destinationText: to });
    const hash = await sendForeign({ nonce: 0n, to, valueAtoken: TOKEN });
    house.chain.mine();
    await lane.runRound(house.signal);
    await release(looked(hash));
    expect(await release({ id, notPaid: true })).toBe(0);
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect(house.chain.balances.get(to)).toBe(2n * TOKEN);
  });

  it("names each further transaction that may have paid what is frozen already, and once", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    const to = freshAddress();
    const { id } = await house.accept({ destination: to, destinationText: to });
    const hashes: string[] = [];
    for (const nonce of [0n, 1n]) {
      hashes.push(await sendForeign({ nonce, to, valueAtoken: TOKEN }));
      house.chain.mine();
      await lane.runRound(house.signal);
      expect(await release(looked(hashes.at(-1) ?? ""))).toBe(1);
      expect(printed.join("\n")).toContain("1 withdrawals may be paid already");
      expect(await house.isFrozen()).toBe(false);
    }
    const { status, reason = "" } = await house.read(id);
    expect(status).toBe("frozen");
    for (const hash of hashes) expect(reason.split(hash)).toHaveLength(2);
    expect(await release(looked(...hashes))).toBe(1);
    expect((await house.read(id)).reason).toBe(reason);
    expect(await release({ id, notPaid: true })).toBe(0);
  });
});

describe("a theft", () => {
  const theft = `0x${"e".repeat(64)}`;

  /** What the watcher writes when coins left the hot wallet and nobody had asked for it. */
  async function steal(hash = theft): Promise<void> {
    await house.ledger.owner.query(
      `INSERT INTO foreign_outflow (wallet, tx_hash, amount_units, fee_atoken, height)
       VALUES ($1, $2, 123, 4, 1)`,
      [WALLET, hash],
    );
    await house.database.query(
      `UPDATE signing_freeze SET frozen = true, reason = 'theft' WHERE wallet = $1`,
      [WALLET],
    );
  }

  it("keeps signing frozen until each of its transactions is acknowledged by its hash", async () => {
    await house.lane().runRound(house.signal);
    const second = `0x${"d".repeat(64)}`;
    await steal();
    await steal(second);
    expect(await release()).toBe(1);
    expect(printed.join("\n")).toContain(`${theft} (block 1) took 123 atoken`);
    expect(await house.isFrozen()).toBe(true);
    await expect(release({ acknowledge: [theft] })).rejects.toThrow("--reason");
    await expect(release(looked(`0x${"c".repeat(64)}`))).rejects.toMatchObject({
      code: "NO_WALLET_TRANSACTION",
    });
    expect(await release(looked(theft))).toBe(1);
    expect(printed.join("\n")).toContain(second);
    expect(printed.join("\n")).not.toContain(theft);
    expect(await house.isFrozen()).toBe(true);
    expect(await release(looked(second))).toBe(0);
    expect(await house.isFrozen()).toBe(false);
    const word = await house.database.query<{ reason: string; by: string }>(
      `SELECT tx_hash, reason, acknowledged_by <> '' AS named, at IS NOT NULL AS dated
         FROM foreign_transaction_acknowledged ORDER BY tx_hash`,
    );
    const common = { reason: "the key is rotated", named: true, dated: true };
    expect(word).toEqual([
      { tx_hash: second, ...common },
      { tx_hash: theft, ...common },
    ]);
  });

  it("that was acknowledged once does not stand in the way of the next release", async () => {
    await house.lane().runRound(house.signal);
    await steal();
    expect(await release(looked(theft))).toBe(0);
    expect(await runFreezeWithdrawals(command(), { reason: "looking" })).toBe(0);
    expect(await release()).toBe(0);
  });
});

describe("causeway withdrawals cancel", () => {
  it("cancels at once, repeats, and says when it is too late", async () => {
    const { id } = await house.accept();
    const options = { id, reason: "a mistake" };
    await expect(runCancelWithdrawal(command(), { id, reason: " " })).rejects.toThrow("--reason");
    expect(await runCancelWithdrawal(command(), options)).toBe(0);
    expect(printed.join("\n")).toContain(`${id} cancelled alice 1 TOKEN`);
    expect(await runCancelWithdrawal(command(true), options)).toBe(0);
    expect(JSON.parse(printed.join(""))).toMatchObject({ outcome: "done" });
    expect(await runCancelWithdrawal(command(), { id: "wd_none", reason: "x" })).toBe(1);
    const paid = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await runCancelWithdrawal(command(), { id: paid.id, reason: "too late" })).toBe(1);
    expect(printed.join("\n")).toContain("its payment is mined");
  });

  it("of a payment whose nonce a foreign transaction took ends it without paying", async () => {
    const to = freshAddress();
    const { id } = await house.accept({ destination: to, destinationText: to });
    const lane = house.lane();
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
    await expect(lane.runRound(house.signal)).rejects.toThrow();
    house.chain.wireFault = () => undefined;
    expect(await runCancelWithdrawal(command(), { id, reason: "unwanted" })).toBe(0);
    await sendForeign({ nonce: 0n });
    house.chain.mine();
    for (let round = 0; round < 3; round++) {
      await lane.runRound(house.signal);
      house.clock.ms += 5_000;
    }
    expect((await house.read(id)).status).toBe("frozen");
    expect(await release()).toBe(0);
    expect((await house.read(id)).status).toBe("cancelled");
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
    await lane.runRound(house.signal);
    expect(house.chain.balances.get(to) ?? 0n).toBe(0n);
  });
});
