/** Slow nodes, two workers, and a database that answers but does not write: the lane goes on. */
import { describe, expect, it } from "@jest/globals";
import type { LaneContext } from "../../../../withdrawal-worker/lane/lane-context.js";
import { LeaseLostError } from "../../../../ledger/wallets/wallet-lease.js";
import { whileHolding } from "../../../../runtime/process/lease-keeper.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { RpcError } from "../../../../rpc-client/errors.js";
import { SqlError } from "../../../../runtime/sql/sql-errors.js";
import { ledgerRole } from "../../../../ledger/roles.js";
import { until } from "../../../helpers/until.js";
import { freshAddress, House, houseForEachTest } from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

/** A lane whose estimates take until the gate opens. */
function slowLane(name: string, leaseMs: number, gate: Promise<void>) {
  const context = house.context({ leaseMs });
  let hasBegun = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    hasBegun = resolve;
  });
  const slow: LaneContext = {
    ...context,
    node: {
      ...context.node,
      async estimate(...asked) {
        hasBegun();
        await gate;
        return context.node.estimate(...asked);
      },
    },
  };
  return { lane: new Lane(slow, name), begun };
}

describe("two workers and a node whose estimates take longer than a lease", () => {
  it("do not take the wallet from each other for ever: the one that works keeps it", async () => {
    const { id } = await house.accept();
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    // Renewed twice before it is over, however busy the machine is.
    const leaseMs = 9_000;
    const first = slowLane("first", leaseMs, gate);
    const second = slowLane("second", leaseMs, gate);
    const round = first.lane.runRound(house.signal);
    await first.begun;
    const [taken] = await house.database.query<{ until: string }>(
      `SELECT lease_expires_at::text AS until FROM hot_wallet`,
    );
    // The database's clock is the lease's: the first one would be over by then.
    const isOver = async () => {
      await second.lane.runRound(house.signal);
      const [now] = await house.database.query<{ over: boolean }>(
        `SELECT clock_timestamp() > $1::timestamptz AS over`,
        [taken?.until],
      );
      return now?.over === true;
    };
    await until(isOver, { timeoutMs: 60_000, what: "the first lease would be over" });
    await second.lane.runRound(house.signal);
    expect(second.lane.status().holdsLease).toBe(false);
    open();
    await round;
    expect((await house.read(id)).status).toBe("broadcast");
    expect(first.lane.status().holdsLease).toBe(true);
  });

  it("stop what they do when the lease is lost all the same", async () => {
    let renewals = 0;
    const renew = async () => {
      renewals += 1;
      return renewals < 3;
    };
    const lost = () => new LeaseLostError("LEASE_LOST", "another worker");
    const work = whileHolding(
      { renew, lost, leaseMs: 3, signal: house.signal },
      (signal: AbortSignal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("torn off")));
        }),
    );
    await expect(work).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(renewals).toBe(3);
  });
});

describe("estimates of contracts", () => {
  /** A lane whose node answers estimates of code as told. */
  function laneWith(
    estimateCode: () => Promise<undefined>,
    settings: Parameters<House["context"]>[0] = {},
  ): Lane {
    const context = house.context(settings);
    const estimate: LaneContext["node"]["estimate"] = async (wallet, payments, options) => {
      const isCode = payments.some(({ to }) => house.chain.withCode.has(to));
      if (!isCode) return context.node.estimate(wallet, payments, options);
      const answer = await estimateCode();
      return payments.map(() => answer);
    };
    return new Lane({ ...context, node: { ...context.node, estimate } }, "worker");
  }

  async function acceptCode() {
    const to = freshAddress();
    house.chain.withCode.add(to);
    return house.accept({ destination: to, destinationText: to });
  }

  it("that never end hold up nobody's plain payment", async () => {
    let open = (): void => undefined;
    const gate = new Promise<undefined>((resolve) => {
      open = () => resolve(undefined);
    });
    const lane = laneWith(() => gate);
    await lane.runRound(house.signal);
    await acceptCode();
    const plain = await house.accept();
    const round = lane.runRound(house.signal);
    const isSent = async () => (await house.read(plain.id)).status === "broadcast";
    await until(isSent, { timeoutMs: 60_000, what: "the plain payment is sent meanwhile" });
    expect(lane.status().blockedReason).toBeUndefined();
    house.clock.ms += 61_000;
    expect(lane.status().blockedReason).toContain("present round has not ended for 61 s");
    open();
    await round;
    expect(lane.status().blockedReason).toBeUndefined();
  });

  it("that there is no time for let the requests behind them come up", async () => {
    const code = [];
    for (let n = 0; n < 10; n++) code.push(await acceptCode());
    const plain = await house.accept();
    const lane = laneWith(async () => undefined, { batchSize: 4 });
    for (let round = 0; round < 4; round++) await lane.runRound(house.signal);
    expect((await house.read(plain.id)).status).toBe("broadcast");
    for (const { id } of code) {
      const waiting = await house.read(id);
      expect([waiting.status, waiting.reason]).toEqual([
        "accepted",
        "waits: there was no time to estimate it",
      ]);
    }
  });
});

describe("what takes long", () => {
  it("of one batch keeps what is mined from being booked, and not of eight of them", async () => {
    for (let n = 0; n < 12; n += 1) await house.accept();
    const context = house.context({ batchSize: 2 });
    const haveCode: LaneContext["node"]["haveCode"] = async (addresses, options) => {
      house.clock.ms += 9_000;
      return context.node.haveCode(addresses, options);
    };
    const lane = new Lane({ ...context, node: { ...context.node, haveCode } }, "worker");
    expect(await lane.runRound(house.signal)).toBe(true);
    expect(house.chain.poolSize).toBe(2);
    for (let round = 0; round < 6; round += 1) await lane.runRound(house.signal);
    expect(house.chain.poolSize).toBe(12);
  });
});

describe("a node behind a balancer that does not have the block yet", () => {
  it("lets requests wait of which it cannot say whether they run code, and ends no round", async () => {
    const context = house.context();
    let isLate = false;
    const haveCode: LaneContext["node"]["haveCode"] = async (addresses, options) =>
      isLate ? addresses.map(() => undefined) : context.node.haveCode(addresses, options);
    const lane = new Lane({ ...context, node: { ...context.node, haveCode } }, "worker");
    const { id: broadcast } = await house.accept();
    await lane.runRound(house.signal);
    isLate = true;
    const { id } = await house.accept();
    await house.pass(lane, { rounds: 3, stepMs: 2_000 });
    expect(lane.status().blockedReason).toBeUndefined();
    expect((await house.read(id)).status).toBe("accepted");
    // What has a nonce goes on.
    expect((await house.read(broadcast)).status).toBe("settled");
    isLate = false;
    await house.pass(lane, { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("settled");
  });
});

describe("a node that does not say whether destinations run code", () => {
  it("keeps nothing that has a nonce from being signed and sent, and the lane says what it said", async () => {
    const context = house.context();
    let isSilent = true;
    const haveCode: LaneContext["node"]["haveCode"] = async (addresses, options) => {
      if (!isSilent) return context.node.haveCode(addresses, options);
      throw new RpcError("starting", { rpcCode: -32_000, method: "eth_getCode" });
    };
    const storeAttempts: LaneContext["ledger"]["storeAttempts"] = async () => {
      throw new SqlError("DATABASE_UNAVAILABLE", "the database is away", { retriable: true });
    };
    const { id: slotted } = await house.accept();
    const unstored = house.laneWith({ ledger: { ...context.ledger, storeAttempts } });
    await expect(unstored.runRound(house.signal)).rejects.toThrow("the database is away");
    expect((await house.read(slotted)).status).toBe("slotted");
    await house.database.query(`UPDATE hot_wallet SET lease_owner = NULL`);
    const { id } = await house.accept();
    const lane = house.laneWith({ node: { ...context.node, haveCode } });
    await expect(lane.runRound(house.signal)).rejects.toThrow("starting");
    expect((await house.read(slotted)).status).toBe("broadcast");
    expect((await house.read(id)).status).toBe("accepted");
    isSilent = false;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });

  it("because it is too much puts those off, and the others are paid", async () => {
    const context = house.context();
    const large = await house.acceptTo();
    const haveCode: LaneContext["node"]["haveCode"] = async (addresses, options) => {
      const known = await context.node.haveCode(addresses, options);
      return known.map((one, index) => (addresses[index] === large.to ? "too-much" : one));
    };
    const plain = await house.accept();
    const lane = house.laneWith({ node: { ...context.node, haveCode } });
    expect(await lane.runRound(house.signal)).toBe(false);
    expect((await house.read(plain.id)).status).toBe("broadcast");
    const { status, reason } = await house.read(large.id);
    expect([status, reason]).toEqual([
      "accepted",
      "waits: the node does not say whether its destination runs code",
    ]);
  });
});

describe("a node that was away for longer than a nonce is waited for", () => {
  it("is sent what its pool has lost, before anything else takes the nonce", async () => {
    const { id, to } = await house.acceptTo();
    house.chain.unmined.add(to);
    const lane = house.lane();
    for (let round = 0; round < 2; round += 1) await lane.runRound(house.signal);
    house.chain.clearPool();
    house.chain.unmined.clear();
    for (let block = 0; block < 3; block += 1) house.chain.mine();
    await house.pass(lane, { rounds: 1, stepMs: 700_000 });
    await house.pass(lane, { rounds: 2, stepMs: 2_000 });
    const { status, hashes } = await house.read(id);
    expect([status, hashes.length]).toEqual(["settled", 1]);
  });
});

describe("a database that answers and does not write", () => {
  const role = () => ledgerRole(new URL(house.ledger.owner.url).pathname.slice(1), "worker");

  /** What is altered of the worker's role counts for new connections. */
  async function alter(change: string, { endsOld }: { endsOld: boolean }): Promise<void> {
    await house.ledger.owner.query(`ALTER ROLE ${role()} ${change}`);
    if (!endsOld) return;
    await house.ledger.owner.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1`,
      [role()],
    );
  }

  for (const [what, change, back, endsOld] of [
    // Nobody ends the connections of a server that was the writer once, and they stay read-only.
    [
      "is read-only",
      "SET default_transaction_read_only = on",
      "SET default_transaction_read_only = DEFAULT",
      false,
    ],
    [
      "ends every statement",
      "SET statement_timeout = '1ms'",
      "SET statement_timeout = DEFAULT",
      true,
    ],
    // As another password does, where the server asks for one (class 28 of both).
    ["lets its role in no more", "NOLOGIN", "LOGIN", true],
  ] as const) {
    it(`and ${what} is waited out with its reason; then the lane goes on`, async () => {
      const { id } = await house.accept();
      const stop = new AbortController();
      const lane = house.lane({ scanIntervalMs: 20 });
      await alter(change, { endsOld: true });
      const running = lane.run(stop.signal);
      let ended = "no";
      void running.then(
        () => (ended = "stopped"),
        (error: unknown) => (ended = String(error)),
      );
      const isBlocked = async () =>
        /read-only|statement timeout|canceling|permitted to log in/.test(
          lane.status().blockedReason ?? "",
        ) || ended !== "no";
      await until(isBlocked, { timeoutMs: 60_000, what: "the lane says why it waits" });
      expect(ended).toBe("no");
      await alter(back, { endsOld });
      const isSent = async () => house.chain.poolSize === 1 || ended !== "no";
      await until(isSent, { timeoutMs: 60_000, what: "the payment is sent" });
      expect(ended).toBe("no");
      stop.abort();
      await running;
      expect((await house.read(id)).hashes).toHaveLength(1);
    });
  }
});
