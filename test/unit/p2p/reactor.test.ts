/** What is said to peers when, on a clock that the test moves. */
import { describe, expect, it } from "@jest/globals";
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import { ConsensusReactor, type Neighbour } from "../../../node/p2p/gossip/consensus-reactor.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import {
  decodeConsensusMessage,
  encodeConsensusMessage,
} from "../../../node/p2p/peers/peer-codec.js";
import { createLogger } from "../../../runtime/process/logger.js";
import {
  FakeDriver,
  freeOfCharge,
  INVALID_MS,
  part,
  statusAt,
  vote,
} from "../../integration/p2p/fakes.js";
import { TestClock } from "./clock.js";

class FakeNeighbour implements Neighbour {
  readonly nodeId = "aa".repeat(20) as NodeId;
  unsentBytes = 0;
  sent: ConsensusMessage[] = [];

  send({ message }: { readonly message: Uint8Array }): void {
    this.sent.push(decodeConsensusMessage(message, () => 4));
  }

  /** What was sent since the last call, statuses apart. */
  taken(): ConsensusMessage[] {
    const messages = this.sent.filter(({ type }) => type !== "status");
    this.sent = [];
    return messages;
  }
}

function stage() {
  const clock = new TestClock();
  const published: ConsensusMessage[] = [];
  const reports: string[] = [];
  const spentMs: number[] = [];
  const reactor = new ConsensusReactor({
    publish: (bytes) => published.push(decodeConsensusMessage(bytes, () => 4)),
    report: (_nodeId, offence) => reports.push(offence),
    load: { ...freeOfCharge, heard: (_nodeId, ms) => spentMs.push(ms) },
    clock,
    log: createLogger({ component: "test", level: "silent" }),
  });
  const driver = new FakeDriver();
  const neighbour = new FakeNeighbour();
  reactor.attach(driver);
  reactor.add(neighbour);
  const tick = (ms: number) => {
    clock.timeMs += ms;
    reactor.tick();
  };
  const hear = (message: ConsensusMessage) =>
    reactor.onDirect(encodeConsensusMessage(message), neighbour.nodeId);
  return { reactor, driver, neighbour, published, reports, spentMs, tick, hear };
}

const vote1: ConsensusMessage = { type: "vote", vote: vote({ height: 1 }) };
const vote2: ConsensusMessage = { type: "vote", vote: vote({ height: 1, index: 2 }) };

describe("the reactor", () => {
  it("tells the status when it changes and twice a second", () => {
    const { driver, neighbour, tick } = stage();
    const count = () => neighbour.sent.length;
    tick(0);
    expect(count()).toBe(1);
    for (let step = 0; step < 9; step++) tick(50);
    expect(count()).toBe(1);
    tick(50);
    expect(count()).toBe(2);
    driver.current = statusAt(2);
    tick(50);
    expect(neighbour.sent.at(-1)).toEqual({ type: "status", status: statusAt(2) });
    expect(count()).toBe(3);
  });

  it("tells a newcomer the status at once", () => {
    const { reactor, tick } = stage();
    tick(0);
    const late = new FakeNeighbour();
    reactor.add(late);
    expect(late.sent).toEqual([{ type: "status", status: statusAt(1) }]);
  });

  it("sends what a peer lacks after a moment, once, and again when it seems lost", async () => {
    const { driver, neighbour, tick, hear } = stage();
    driver.repairs = () => [vote1, vote2];
    await hear({ type: "status", status: statusAt(1) });
    tick(0);
    expect(neighbour.taken()).toEqual([]);
    tick(50);
    expect(neighbour.taken()).toEqual([]);
    tick(50);
    expect(neighbour.taken()).toEqual([vote1, vote2]);
    for (let step = 0; step < 19; step++) tick(50);
    expect(neighbour.taken()).toEqual([]);
    tick(50);
    expect(neighbour.taken()).toEqual([vote1, vote2]);
    // It has the first one now, and soon both.
    driver.repairs = () => [vote2];
    await hear({ type: "status", status: statusAt(1, 1) });
    tick(1_000);
    expect(neighbour.taken()).toEqual([vote2]);
    driver.repairs = () => [];
    tick(2_000);
    tick(2_000);
    expect(neighbour.taken()).toEqual([]);
  });

  it("does not send what came by gossip in the meantime", async () => {
    const { driver, neighbour, tick, hear } = stage();
    driver.repairs = ({ prevotes }) => (prevotes[0] === true ? [] : [vote1]);
    await hear({ type: "status", status: statusAt(1) });
    tick(50);
    await hear({ type: "status", status: statusAt(1, 1) });
    tick(100);
    tick(100);
    expect(neighbour.taken()).toEqual([]);
  });

  it("sends at once to a peer that is heights behind", async () => {
    const { driver, neighbour, tick, hear } = stage();
    driver.current = statusAt(9);
    driver.repairs = () => [vote1, part(7)];
    await hear({ type: "status", status: statusAt(7) });
    tick(0);
    expect(neighbour.taken()).toEqual([vote1, part(7)]);
  });

  it("sends nothing more to a peer that does not read", async () => {
    const { driver, neighbour, tick, hear } = stage();
    driver.current = statusAt(9);
    driver.repairs = () => [vote1];
    neighbour.unsentBytes = 2 * 1024 * 1024;
    await hear({ type: "status", status: statusAt(7) });
    tick(0);
    tick(600);
    expect(neighbour.sent).toEqual([]);
    neighbour.unsentBytes = 0;
    tick(50);
    expect(neighbour.taken()).toEqual([vote1]);
  });

  it("looks at one status in a tick, however many come", async () => {
    const { driver, tick, hear } = stage();
    let asked = 0;
    driver.repairs = () => {
      asked++;
      return [];
    };
    for (let count = 0; count < 100; count++) await hear({ type: "status", status: statusAt(1) });
    tick(50);
    expect(asked).toBe(1);
  });

  it("relays only what is new, and holds what is invalid against the sender", async () => {
    const { reactor, driver, reports, hear } = stage();
    const from = new FakeNeighbour().nodeId;
    const gossip = (message: ConsensusMessage) =>
      reactor.onGossip(encodeConsensusMessage(message), from);
    const invalid: ConsensusMessage = { type: "vote", vote: vote({ mark: 0 }) };
    expect(await gossip(vote1)).toBe("relay");
    expect(await gossip(vote1)).toBe("drop");
    expect(await gossip(invalid)).toBe("invalid");
    expect(await gossip({ type: "status", status: statusAt(1) })).toBe("invalid");
    expect(await reactor.onGossip(Buffer.from("junk"), from)).toBe("invalid");
    expect(reports).toEqual([]);
    await hear(invalid);
    await reactor.onDirect(Buffer.from("junk"), from);
    expect(reports).toEqual(["invalidMessage", "malformed"]);
    expect(driver.heard.map(({ peer }) => peer)).toEqual([from, from, from, from]);
  });

  it("charges the time of judging what is invalid to its sender, and little for what is known", async () => {
    const { spentMs, hear } = stage();
    await hear({ type: "vote", vote: vote({ mark: 0 }) });
    expect(spentMs).toEqual([INVALID_MS]);
    await hear(vote1);
    expect(spentMs).toEqual([INVALID_MS]);
    await hear(vote1);
    expect(spentMs).toEqual([INVALID_MS, expect.any(Number)]);
    expect(spentMs[1]).toBeLessThan(1);
  });

  it("holds what came early and turned out invalid later against the sender as well", async () => {
    const { driver, reports, spentMs, hear } = stage();
    const later: ((spentMs: number) => void)[] = [];
    driver.receive = (_message, _peer, onInvalid) => {
      if (onInvalid !== undefined) later.push(onInvalid);
      return Promise.resolve("useless");
    };
    await hear({ type: "vote", vote: vote({ height: 2, mark: 0 }) });
    expect(reports).toEqual([]);
    for (const onInvalid of later) onInvalid(INVALID_MS);
    expect([reports, spentMs.at(-1)]).toEqual([["invalidMessage"], INVALID_MS]);
  });

  it("drops messages while the driver does not run", async () => {
    const { reactor, driver, published } = stage();
    reactor.detach();
    const bytes = encodeConsensusMessage(vote1);
    expect(await reactor.onGossip(bytes, new FakeNeighbour().nodeId)).toBe("drop");
    expect(driver.heard).toEqual([]);
    reactor.broadcast(vote1);
    expect(published).toEqual([vote1]);
  });
});
