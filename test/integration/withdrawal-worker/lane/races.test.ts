/**
 * What changes while a round goes on: the kill switch between two batches of stored bytes, a freeze
 * around a signature and a sending, answers that do not come, and work that never ends.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { Hash32, Hex } from "../../../../chain/hex.js";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { readSlotQueue } from "../../../../ledger/withdrawals/nonce-slots.js";
import { freezeSigning, releaseSigning } from "../../../../ledger/requests/signing-freeze.js";
import { freezeWithdrawals } from "../../../../ledger/withdrawals/slot-outcomes.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { postponeWithdrawals } from "../../../../ledger/requests/withdrawal-steps.js";
import { drainWallet, retireWallet } from "../../../../ledger/wallets/wallet-registry.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import type { EstimateMeaning } from "../../../../withdrawal-worker/withdrawal-state.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
} from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

const statusOf = async (id: WithdrawalId) => (await house.read(id)).status;

/** A lane whose node and signer do something of the test's before they answer. */
function laneWith(
  before: {
    readonly send?: (raws: readonly Hex[]) => Promise<unknown>;
    readonly sign?: () => Promise<unknown>;
    readonly estimate?: (to: string) => EstimateMeaning | undefined;
  },
  batchSize = 50,
): Lane {
  const context = house.context({ batchSize });
  const { node, signer } = context;
  const over: Partial<LaneContext> = {
    node: {
      ...node,
      async send(raws, options) {
        await before.send?.(raws);
        return node.send(raws, options);
      },
      async estimate(wallet, payments, options) {
        const answers = await node.estimate(wallet, payments, options);
        return answers.map((answer, index) => {
          return before.estimate?.(payments[index]?.to ?? "") ?? answer;
        });
      },
    },
    signer: {
      address: signer.address,
      review: (payments) => signer.review(payments),
      trouble: () => signer.trouble(),
      async sign(intents, options) {
        await before.sign?.();
        return signer.sign(intents, options);
      },
    },
  };
  return new Lane({ ...context, ...over }, randomUUID());
}

async function attempts(): Promise<Hash32[]> {
  const rows = await house.database.query<{ hash: Hash32 }>(`SELECT hash FROM withdrawal_attempt`);
  return rows.map(({ hash }) => hash);
}

describe("a wallet", () => {
  it("that is retired while its payments are being signed has none of them stored or sent", async () => {
    const { id } = await house.accept();
    const word = { operator: "ann", reason: "its key has leaked" };
    const lane = laneWith({
      async sign() {
        await drainWallet(house.ledger.owner, WALLET, word);
        const rest = { balanceAtoken: 0n, tokens: [], height: 0, dustAtoken: 0n };
        await retireWallet(house.ledger.owner, WALLET, { ...word, ...rest, force: true });
      },
    });
    await lane.runRound(house.signal);
    expect([await statusOf(id), await attempts()]).toEqual(["slotted", []]);
    expect(house.chain.arrived).toEqual([]);
  });
});

describe("the kill switch", () => {
  it("that is set while stored bytes are sent again stops what was not sent yet", async () => {
    const ids: WithdrawalId[] = [];
    for (let n = 0; n < 5; n += 1) ids.push((await house.accept()).id);
    const set = (level: "stop-broadcast" | "none") =>
      setKillSwitch(house.ledger.owner, { level, reason: "drill", by: "tests" });
    let batches = 0;
    let isDrill = false;
    const lane = laneWith(
      {
        send: async () => {
          batches += 1;
          if (isDrill) await set("stop-broadcast");
        },
      },
      2,
    );
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
    const areSigned = async () => (await attempts()).length === ids.length;
    while (!(await areSigned())) await lane.runRound(house.signal).catch(() => undefined);
    expect(house.chain.poolSize).toBe(0);
    house.chain.wireFault = () => undefined;
    house.clock.ms += 10_000;
    [batches, isDrill] = [0, true];
    await lane.runRound(house.signal);
    expect([batches, house.chain.poolSize]).toEqual([1, 2]);
    house.clock.ms += 10_000;
    await lane.runRound(house.signal);
    expect([batches, house.chain.poolSize]).toEqual([1, 2]);
    await set("none");
    isDrill = false;
    await lane.runRound(house.signal);
    house.chain.mine();
    for (let round = 0; round < 3; round += 1) await lane.runRound(house.signal);
    expect(new Set(await Promise.all(ids.map(statusOf)))).toEqual(new Set(["settled"]));
    expect(await attempts()).toHaveLength(5);
  });
});

describe("a freeze", () => {
  it("that comes while the signer signs lets nothing be stored or sent", async () => {
    const { id } = await house.accept();
    let isDrill = true;
    const lane = laneWith({
      sign: async () => isDrill && (await freezeSigning(house.database, WALLET, "somebody looks")),
    });
    await lane.runRound(house.signal);
    expect([await statusOf(id), await attempts(), house.chain.poolSize]).toEqual([
      "slotted",
      [],
      0,
    ]);
    await releaseSigning(house.ledger.owner, WALLET);
    isDrill = false;
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("settled");
    expect(await attempts()).toHaveLength(1);
  });

  it("of a withdrawal whose bytes are on the wire stays, and the receipt settles it once", async () => {
    const { id } = await house.accept();
    const lane = laneWith({
      send: () => freezeWithdrawals(house.ledger.owner, [{ id, reason: "somebody looks" }]),
    });
    await lane.runRound(house.signal);
    expect([await statusOf(id), house.chain.poolSize]).toEqual(["frozen", 1]);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect(await statusOf(id)).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
    expect(await attempts()).toHaveLength(1);
  });

  it("by a foreign transaction in the pool signs nothing of the batch behind", async () => {
    const ids: WithdrawalId[] = [];
    for (let n = 0; n < 6; n += 1) ids.push((await house.accept()).id);
    const frozenAt: number[] = [];
    const lane = laneWith(
      {
        send: async () => {
          if (frozenAt.length > 0) return;
          await freezeSigning(house.ledger.owner, WALLET, "a foreign transaction");
          frozenAt.push((await attempts()).length);
        },
      },
      2,
    );
    await lane.runRound(house.signal);
    // What was stored by then goes out; nothing is stored behind the freeze.
    expect(frozenAt).toHaveLength(1);
    expect(await attempts()).toHaveLength(frozenAt[0] ?? -1);
    house.chain.mine();
    await lane.runRound(house.signal);
    const states = await Promise.all(ids.map(statusOf));
    expect(states.filter((status) => status === "settled")).toHaveLength(frozenAt[0] ?? -1);
  });
});

describe("an estimate that is not answered", () => {
  const unknown = { kind: "unknown", reason: "the node gave no answer in time" } as const;

  async function now(): Promise<string> {
    const [row] = await house.database.query<{ now: string }>(
      `SELECT clock_timestamp()::text AS now`,
    );
    return row?.now ?? "";
  }

  /** How long after that time it is tried again, in the usual delays of a second. */
  async function delaysOf(id: WithdrawalId, since: string): Promise<number> {
    const [row] = await house.database.query<{ wait: number }>(
      `SELECT extract(epoch FROM next_try_at - $2::timestamptz)::float AS wait
         FROM withdrawal WHERE id = $1`,
      [id, since],
    );
    return row?.wait ?? 0;
  }

  it("puts a payout to code far behind those that were never asked about, and fails none", async () => {
    const to = freshAddress();
    house.chain.withCode.add(to);
    const silent = await house.accept({ destination: to, destinationText: to });
    const other = freshAddress();
    house.chain.withCode.add(other);
    let isSilent = true;
    const lane = laneWith({ estimate: (one) => (isSilent && one === to ? unknown : undefined) });
    const before = await now();
    await lane.runRound(house.signal);
    const waiting = await house.read(silent.id);
    expect(waiting).toMatchObject({ status: "accepted", nonce: undefined });
    expect(waiting.reason).toContain("the node could not estimate it");
    expect(await delaysOf(silent.id, before)).toBeGreaterThan(5);
    // A second one to code comes meanwhile and is paid at once.
    const late = await house.accept({ destination: other, destinationText: other });
    for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
    expect(await statusOf(late.id)).toBe("broadcast");
    expect(await house.balance("alice")).toEqual({ available: 98n * TOKEN, held: 2n * TOKEN });
    // By then the code is gone: it is a plain payment, and the answer comes.
    isSilent = false;
    house.chain.withCode.delete(to);
    await house.ledger.owner.query(`UPDATE withdrawal SET next_try_at = now() WHERE id = $1`, [
      silent.id,
    ]);
    await lane.runRound(house.signal);
    expect(await statusOf(silent.id)).toBe("broadcast");
  });

  it("of an address that got code since it was looked at holds up no payment beside it", async () => {
    const to = freshAddress();
    const silent = await house.accept({ destination: to, destinationText: to });
    const plain = [await house.accept(), await house.accept()];
    const lane = laneWith({ estimate: (one) => (one === to ? unknown : undefined) });
    await lane.runRound(house.signal);
    for (const { id } of plain) expect(await statusOf(id)).toBe("broadcast");
    expect(await statusOf(silent.id)).toBe("accepted");
    expect(await delaysOf(silent.id, await now())).toBeLessThan(5);
    expect((await house.read(silent.id)).nonce).toBeUndefined();
  });
});

describe("the queue for nonces", () => {
  it("comes to each that waits, though new ones come faster than it is worked off", async () => {
    const first: WithdrawalId[] = [];
    for (let n = 0; n < 6; n += 1) first.push((await house.accept({ amountUnits: 1n })).id);
    const seen = new Map<WithdrawalId, number>();
    for (let round = 0; round < 12; round += 1) {
      const looked = await readSlotQueue(house.database, { limit: 2 });
      for (const { id } of looked) seen.set(id, (seen.get(id) ?? 0) + 1);
      const ids = looked.map(({ id }) => id);
      await postponeWithdrawals(house.database, { ids, reason: "waits", delayMs: 0 });
      for (let n = 0; n < 3; n += 1) await house.accept({ amountUnits: 1n });
    }
    expect(first.map((id) => seen.get(id) ?? 0).every((looks) => looks >= 2)).toBe(true);
    expect(Math.max(...seen.values())).toBeLessThanOrEqual(3);
    expect(seen.size).toBeGreaterThan(12);
  });
});
