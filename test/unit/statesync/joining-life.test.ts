/** A node that joins by state sync and is told to end, at each step of its two lives. */
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { JoiningLife } from "../../../node/compose/joining-life.js";
import type { JoiningNode, NodeOptions } from "../../../node/compose/node.js";
import type { Service } from "../../../runtime/process/lifecycle.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { createGate } from "../../helpers/gate.js";

const REASON = new DOMException("the process is stopping", "AbortError");

/** A node whose steps a test lets go on, one after the other. */
function stage() {
  const process = new AbortController();
  const [restored, adopted, secondStart] = [createGate(), createGate(), createGate()];
  const done: string[] = [];
  const faults: unknown[] = [];
  const serve = (name: string, production: Promise<void>): readonly Service[] => [
    { name: "store", stop: async () => void done.push(`${name} store closed`) },
    {
      name: "block production",
      stop: async () => {
        await production;
        done.push(`${name} production ended`);
      },
    },
  ];
  const startNode = async ({ signal, join }: Pick<NodeOptions, "signal" | "join">) => {
    if (join === undefined) {
      done.push("second start");
      await secondStart.opened;
      signal.throwIfAborted();
      return serve("second", Promise.resolve());
    }
    const node = { signal, halt: (reason: string) => done.push(reason) };
    return serve("first", join(node as unknown as JoiningNode));
  };
  const life = new JoiningLife({
    startNode,
    restore: async () => {
      await restored.opened;
      return 50;
    },
    adopt: async () => {
      done.push("adopting");
      await adopted.opened;
    },
    log: createLogger({ component: "test", level: "silent" }),
    signal: process.signal,
    fatal: (error) => faults.push(error),
  });
  return { life, restored, adopted, secondStart, done, faults, end: () => process.abort(REASON) };
}

const FIRST_ENDED = ["first production ended", "first store closed"];

describe("a node that joins by state sync", () => {
  it("serves on the restored state, and ends", async () => {
    const { life, restored, adopted, secondStart, done, faults, end } = stage();
    await life.start();
    for (const gate of [restored, adopted, secondStart]) gate.open();
    await turn();
    end();
    await life.stop();
    expect(done.slice(0, 4)).toEqual([...FIRST_ENDED, "adopting", "second start"]);
    expect(done.slice(4)).toEqual(["second production ended", "second store closed"]);
    expect(faults).toEqual([]);
  });

  it("stops each part once where its restore comes to its end as it is told to end", async () => {
    const { life, restored, adopted, secondStart, done, faults, end } = stage();
    await life.start();
    end();
    const stopping = life.stop();
    await turn();
    for (const gate of [restored, adopted, secondStart]) gate.open();
    await stopping;
    await turn();
    expect({ done, faults }).toEqual({ done: FIRST_ENDED, faults: [] });
  });

  it("does not start again when it is told to end while the restored state takes its place", async () => {
    const { life, restored, adopted, done, faults, end } = stage();
    await life.start();
    restored.open();
    await turn();
    expect(done).toEqual([...FIRST_ENDED, "adopting"]);
    end();
    adopted.open();
    await life.stop();
    expect({ done, faults }).toEqual({ done: [...FIRST_ENDED, "adopting"], faults: [] });
  });

  it("reports no fault when it is told to end while it starts again", async () => {
    const { life, restored, adopted, secondStart, done, faults, end } = stage();
    await life.start();
    for (const gate of [restored, adopted]) gate.open();
    await turn();
    expect(done.at(-1)).toBe("second start");
    end();
    secondStart.open();
    await life.stop();
    expect({ last: done.at(-1), faults }).toEqual({ last: "second start", faults: [] });
  });
});
