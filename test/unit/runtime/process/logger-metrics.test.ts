import { describe, expect, it } from "@jest/globals";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics, sharedRead } from "../../../../runtime/process/metrics.js";
import { RareLine } from "../../../../runtime/process/rare-line.js";

describe("createLogger", () => {
  function capture(level?: "debug" | "warn") {
    const lines: string[] = [];
    const destination = { write: (line: string) => lines.push(line) };
    return { lines, log: createLogger({ component: "watcher", level, destination }) };
  }

  it("writes one JSON object per line with component, level, time and fields", () => {
    const { lines, log } = capture();
    log.info({ height: 7 }, "block committed");
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      component: "watcher",
      height: 7,
      msg: "block committed",
    });
  });

  it("keeps quiet below its level", () => {
    const { lines, log } = capture("warn");
    log.info("rare");
    log.debug("often");
    log.child({ part: "x" }).warn("look");
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["look"]);
  });

  it("hides secrets that come as fields by mistake", () => {
    const { lines, log } = capture();
    log.warn({ password: "S3CRET", wallet: { passphrase: "S3CRET" } }, "careless");
    expect(lines[0]).not.toContain("S3CRET");
  });
});

describe("a line about what others cause", () => {
  it("is written every ten seconds at most, with how often it happened", () => {
    let nowMs = 5;
    const line = new RareLine({ monotonicMs: () => nowMs });
    const said: number[] = [];
    const happened = () => line.happened((times) => said.push(times));
    for (let count = 0; count < 1_000; count++) happened();
    expect(said).toEqual([1]);
    nowMs += 9_999;
    happened();
    nowMs += 1;
    happened();
    expect(said).toEqual([1, 1_001]);
  });
});

describe("createMetrics", () => {
  it("gives the same metric for the same name and shows collected values", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.counter("causeway_credits_total", "Credits.", ["asset"]).inc({ asset: "TOKEN" });
    metrics.counter("causeway_credits_total", "Credits.", ["asset"]).inc({ asset: "TOKEN" });
    metrics.gauge("causeway_lag_blocks", "Lag.", [], (gauge) => gauge.set(3));
    metrics.histogram("causeway_wait_seconds", "Wait.").observe(0.2);
    const page = await metrics.page();
    expect(page).toContain('causeway_credits_total{asset="TOKEN"} 2');
    expect(page).toContain("causeway_lag_blocks 3");
    expect(page).toContain("causeway_wait_seconds_count 1");
  });
});

describe("a read that figures of a page share", () => {
  it("is waited for so long and not longer, and goes on meanwhile, once", async () => {
    let begun = 0;
    let answer: (value: number) => void = () => undefined;
    const slow = async () => {
      begun += 1;
      return new Promise<number>((resolve) => (answer = resolve));
    };
    const metrics = createMetrics({ processMetrics: false });
    const read = sharedRead(slow, 20);
    for (const name of ["causeway_one", "causeway_two"]) {
      metrics.gauge(name, "Of a table.", [], async (gauge) => {
        const found = await read();
        if (found === undefined) gauge.remove();
        else gauge.set(found);
      });
    }
    for (let page = 0; page < 2; page += 1) {
      expect(await metrics.page()).not.toMatch(/^causeway_/m);
    }
    expect(begun).toBe(1);
    const asked = metrics.page();
    answer(7);
    expect(await asked).toMatch(/^causeway_one 7$[^]*^causeway_two 7$/m);
    expect(begun).toBe(1);
  });
});
