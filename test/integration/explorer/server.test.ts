/** The explorer's server over a real node: caching, packing, limits, what it refuses, and a node that is away. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { systemClock } from "../../../runtime/process/clock.js";
import { ExplorerStage, openExplorer, rawGet, type Scene } from "../../helpers/pages/explorer.js";
import { until } from "../../helpers/until.js";

let stage: ExplorerStage;
let scene: Scene;

const page = (...request: Parameters<ExplorerStage["page"]>) => stage.page(...request);

beforeAll(async () => {
  stage = await ExplorerStage.open(0, {});
  scene = await stage.play();
});

afterAll(async () => {
  await stage.close();
});

describe("the server", () => {
  it("answers 405 to every method but GET and HEAD", async () => {
    for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const { status, headers } = await stage.get("/", {}, method);
      expect({ method, status }).toEqual({ method, status: 405 });
      expect(headers["allow"]).toBe("GET, HEAD");
    }
    const head = await stage.get("/", {}, "HEAD");
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: "" });
  });

  it("lets final pages be kept, others only be asked for again, and knows what a client has", async () => {
    const target = `/block/${scene.plain.blockHash}`;
    const first = await stage.get(target);
    expect(first.headers["cache-control"]).toBe("public, max-age=86400, immutable");
    // A height is of another block after a loss of blocks, or on a chain that was made anew.
    const { blockNumber } = scene.plain;
    for (const path of [`/block/${blockNumber}`, `/proof/header/${blockNumber}`]) {
      const { status, headers } = await stage.get(path);
      const caching = headers["cache-control"];
      expect({ path, status, caching }).toEqual({
        path,
        status: 200,
        caching: "public, max-age=60",
      });
      const known = await stage.get(path, { "if-none-match": String(headers["etag"]) });
      expect({ path, status: known.status }).toEqual({ path, status: 304 });
    }
    expect(first.headers["vary"]).toBe("Accept-Language, Cookie, Accept-Encoding");
    const again = await stage.get(target, { "if-none-match": String(first.headers["etag"]) });
    expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: "" });
    expect((await stage.get("/")).headers["cache-control"]).toBe("no-cache");
    // Logs and calls of contracts that may still be verified are not kept as they were read before.
    for (const [hash, caching] of [
      [scene.plain.hash, "public, max-age=60"],
      [scene.transfer.hash, "no-cache"],
      [scene.internal.hash, "no-cache"],
    ] as const) {
      const { headers } = await stage.get(`/tx/${hash}`);
      expect({ hash, caching: headers["cache-control"] }).toEqual({ hash, caching });
      const known = await stage.get(`/tx/${hash}`, { "if-none-match": String(headers["etag"]) });
      expect({ hash, status: known.status }).toEqual({ hash, status: 304 });
    }
    expect((await stage.get("/no/such")).headers["cache-control"]).toBe("no-store");
  });

  it("packs pages and files for who can unpack them", async () => {
    const target = `/block/${scene.plain.blockNumber}`;
    const plain = await stage.get(target);
    const style = /\/assets\/[^"]+style\.css/.exec(plain.text)?.[0] ?? "";
    for (const path of [target, style]) {
      const whole = await stage.get(path);
      expect({ path, encoding: whole.headers["content-encoding"] }).toEqual({ path });
      for (const refused of ["gzip;q=0", "br, gzip; q=0.0, *", "identity", "*;q=0"]) {
        const reply = await stage.get(path, { "accept-encoding": refused });
        expect({ refused, same: reply.text === whole.text }).toEqual({ refused, same: true });
      }
      for (const taken of ["gzip", "br;q=1, GZIP ;q=0.5", "*"]) {
        const { headers } = await stage.get(path, { "accept-encoding": taken }, "HEAD");
        expect({ taken, encoding: headers["content-encoding"] }).toEqual({
          taken,
          encoding: "gzip",
        });
        expect(Number(headers["content-length"])).toBeLessThan(whole.text.length);
        expect(headers["vary"]).toContain("Accept-Encoding");
        const [own, other] = [String(headers["etag"]), String(whole.headers["etag"])];
        expect(own).not.toBe(other);
        for (const tag of [own, other, `W/${own}`]) {
          const sent = { "accept-encoding": taken, "if-none-match": tag };
          expect({ tag, status: (await stage.get(path, sent)).status }).toEqual({
            tag,
            status: 304,
          });
        }
      }
      // The client of Node's own unpacks as browsers do.
      const unpacked = await fetch(`${stage.url}${path}`, {
        headers: { "accept-encoding": "gzip" },
      });
      expect(unpacked.headers.get("content-encoding")).toBe("gzip");
      expect(await unpacked.text()).toBe(whole.text);
    }
  });

  it("remembers the language that was chosen", async () => {
    const chosen = await page("/validators?lang=de");
    expect(chosen.root.attributes.get("lang")).toBe("de");
    const [cookie = ""] = chosen.reply.headers["set-cookie"] ?? [];
    expect(cookie).toContain("lang=de;");
    const { root } = await page("/validators", { cookie: cookie.split(";")[0] ?? "" });
    expect(root.attributes.get("lang")).toBe("de");
    expect((await page("/?lang=xx")).root.attributes.get("lang")).toBe("en");
  });

  it("answers odd addresses with pages, never with faults", async () => {
    for (const target of [
      "/%",
      "/%00",
      "/block/%ff",
      "//evil.example/",
      "/%2fevil.example",
      "/%5cevil.example",
      "/tx/",
      "/block/1/2",
      `/block/${"9".repeat(300)}`,
      `/search?q=${"a".repeat(2_000)}`,
      "/blocks?before=x",
      "/address/__proto__",
      "/proof/tx/x",
      "/proof/header/0",
      "/proof/address/0x00?height=abc",
    ]) {
      const { status } = await stage.get(target);
      expect({ target, isRefused: status === 400 || status === 404 }).toEqual({
        target,
        isRefused: true,
      });
    }
  });

  it("is healthy and ready, and counts", async () => {
    expect((await stage.get("/health")).text).toBe('{"status":"ok"}');
    // A busy machine may be late with a block, and its node with the answer.
    const isReady = async () => (await stage.get("/ready")).text === '{"ready":true}';
    await until(isReady, { timeoutMs: 60_000, what: "/ready says so" });
    expect((await stage.get("/metrics")).text).toContain('route="/block"');
  });

  it("makes so many pages for one client and minute, and gives finished ones all the same", async () => {
    const stopping = new AbortController();
    const limits = {
      CAUSEWAY_EXPLORER_LIMITS_LOOPBACK: "true",
      CAUSEWAY_EXPLORER_LIMITS_PAGES_PER_MINUTE: "6",
    };
    // No part of the minute passes, however long a busy machine takes for a page.
    const clock = { ...systemClock, monotonicMs: () => 0 };
    const limited = await openExplorer(stage.home, stage.offset, stopping.signal, limits, clock);
    try {
      const ask = (target: string) => rawGet(limited.server.port, target);
      const kept = `/block/${scene.plain.blockNumber}`;
      expect((await ask(kept)).status).toBe(200);
      const refused = await ask(`/block/${scene.failed.blockNumber}`);
      expect(refused.status).toBe(429);
      expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
      expect((await ask(kept)).status).toBe(200);
    } finally {
      stopping.abort();
      for (const service of limited.services.toReversed()) await service.stop();
    }
  });

  it("tells open pages of new heads", async () => {
    const ending = new AbortController();
    const answer = await fetch(`${stage.url}/live`, { signal: ending.signal });
    expect(answer.headers.get("content-type")).toContain("text/event-stream");
    let seen = "";
    const reading = (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of answer.body ?? []) seen += decoder.decode(chunk);
    })().catch(() => undefined);
    await until(() => (seen.match(/event: head/g) ?? []).length >= 3, { timeoutMs: 30_000 });
    ending.abort();
    await reading;
    const heights = [...seen.matchAll(/^id: (\d+)$/gm)].map((match) => Number(match[1]));
    expect(heights).toEqual([...heights].toSorted((left, right) => left - right));
  });
});

describe("without its node", () => {
  it("shows what it has, says the rest, and does not end", async () => {
    const kept = `/block/${scene.plain.blockNumber}`;
    await stage.get(kept);
    await stage.stopNode();
    expect((await stage.get(kept)).status).toBe(200);
    const { reply, text } = await page("/validators?lang=en");
    // The page of a moment ago may still be there.
    if (reply.status !== 200) expect(text).toContain("The node does not answer just now");
    await until(async () => (await stage.get("/validators")).status === 503, { timeoutMs: 30_000 });
    const refused = await stage.get("/validators");
    expect(refused.headers["retry-after"]).toBe("5");
    expect((await stage.get("/health")).status).toBe(200);
    const ready = await stage.get("/ready");
    expect(ready.status).toBe(503);
    expect(JSON.parse(ready.text)).toMatchObject({ ready: false });
  });
});
