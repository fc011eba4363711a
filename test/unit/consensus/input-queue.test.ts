/** What waits for consensus: whose turn it is, and who has to make room. */
import { describe, expect, it } from "@jest/globals";
import { InputQueue } from "../../../node/consensus/input-queue.js";

interface Item {
  readonly name: string;
}

const { signal } = new AbortController();

function stage(limits = { maxPeerBytes: 100, maxBytes: 250 }) {
  const dropped: string[] = [];
  const useful = new Set<string>();
  const queue = new InputQueue<Item>(limits, {
    isUseful: (peer) => useful.has(peer),
    onDropped: ({ name }) => dropped.push(name),
  });
  const offer = (peer: string, name: string, sizeBytes = 10) =>
    queue.offer({ name: `${peer}${name}` }, { peer, sizeBytes });
  const names = () => queue.drain().map(({ name }) => name);
  return { queue, dropped, useful, offer, names };
}

describe("the queue of consensus", () => {
  it("gives each peer its turn, however much one of them sends", () => {
    const { offer, names } = stage();
    for (let count = 0; count < 5; count++) offer("a", `${count}`);
    offer("b", "0");
    offer("c", "0");
    offer("c", "1");
    expect(names()).toEqual(["a0", "b0", "c0", "a1", "c1", "a2", "a3", "a4"]);
  });

  it("gives what this node made itself first, in its order", async () => {
    const { queue, offer } = stage();
    offer("a", "0");
    queue.push({ name: "timeout" });
    queue.push({ name: "second" });
    const names = [];
    for (let count = 0; count < 3; count++) names.push((await queue.next(signal)).name);
    expect(names).toEqual(["timeout", "second", "a0"]);
  });

  it("refuses what one peer has too much of, in bytes, and nobody else", () => {
    const { offer, names } = stage();
    expect(offer("a", "0", 60)).toBe(true);
    expect(offer("a", "1", 60)).toBe(false);
    expect(offer("a", "2", 40)).toBe(true);
    expect(offer("b", "0", 60)).toBe(true);
    names();
    expect(offer("a", "3", 100)).toBe(true);
  });

  it("makes room for a peer with little by dropping the newest of whoever has most", () => {
    const { offer, dropped, names } = stage();
    for (const peer of ["a", "b"]) {
      for (let count = 0; count < 10; count++) offer(peer, `${count}`);
    }
    for (let count = 0; count < 5; count++) expect(offer("c", `${count}`)).toBe(true);
    expect(offer("c", "5")).toBe(true);
    expect(dropped).toEqual(["a9"]);
    // Who has most gets no more room.
    expect(offer("b", "10", 100)).toBe(false);
    expect(names()).toHaveLength(25);
  });

  it("gives up what one peer has waiting, and its room", () => {
    const { queue, offer, useful, dropped, names } = stage({ maxPeerBytes: 100, maxBytes: 100 });
    useful.add("b");
    for (const name of ["0", "1", "2"]) for (const peer of ["a", "b"]) offer(peer, name);
    expect(queue.remove("a").map(({ name }) => name)).toEqual(["a0", "a1", "a2"]);
    expect(queue.remove("b").map(({ name }) => name)).toEqual(["b0", "b1", "b2"]);
    expect(queue.remove("c")).toEqual([]);
    expect(offer("a", "3", 100)).toBe(true);
    expect([dropped, names()]).toEqual([[], ["a3"]]);
  });

  it("hears a peer that has been of use every second time, however many keys a liar has", () => {
    const { offer, useful, names } = stage({ maxPeerBytes: 1_000, maxBytes: 10_000 });
    offer("good", "0");
    useful.add("good");
    for (let key = 0; key < 50; key++) offer(`liar ${key} `, "x");
    for (let count = 1; count < 4; count++) offer("good", `${count}`);
    const order = names().slice(0, 8);
    expect(order.filter((name) => name.startsWith("good"))).toEqual([
      "good0",
      "good1",
      "good2",
      "good3",
    ]);
  });

  it("wakes who waits, and lets go at the signal", async () => {
    const { queue, offer } = stage();
    const waiting = queue.next(signal);
    offer("a", "0");
    expect(await waiting).toEqual({ name: "a0" });
    const ending = new AbortController();
    const ended = queue.next(ending.signal);
    ending.abort(new Error("over"));
    await expect(ended).rejects.toThrow("over");
  });
});
