/** What the indexer's API does for readers that come again, and for those that go. */
import { describe, expect, it } from "@jest/globals";
import { withEntityTags } from "../../../indexer/api/entity-tags.js";
import { mapIndexerError } from "../../../indexer/api/errors.js";
import { BlockStream } from "../../../indexer/api/stream.js";
import { IndexerError } from "../../../indexer/errors.js";
import type { HttpRequest, HttpRoute } from "../../../runtime/http/http-route.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";
import { createGate } from "../../helpers/gate.js";
import { contextWithoutNode } from "../../helpers/indexer/read-context.js";
import { leftBehind } from "../../helpers/effort/signals.js";

function requestWith(
  headers: HttpRequest["headers"],
  signal: AbortSignal = new AbortController().signal,
  remoteAddress?: string,
): HttpRequest {
  const rawBody = new Uint8Array();
  return {
    method: "GET",
    path: "/",
    params: {},
    query: {},
    headers,
    body: undefined,
    rawBody,
    remoteAddress,
    signal,
  };
}

describe("the stream of blocks", () => {
  const noRows = { query: () => Promise.resolve([]) };
  const options = { maxReaders: 1, signal: new AbortController().signal };

  it("keeps no place for a reader that was gone before its first piece", async () => {
    const answer = createGate();
    const slow = {
      query: async () => {
        await answer.opened;
        return [];
      },
    };
    const stream = new BlockStream(contextWithoutNode(slow, 7), options);
    const reader = new AbortController();
    const opening = stream.open(requestWith({}, reader.signal));
    reader.abort();
    answer.open();
    // As a pipeline ends what it never read.
    await (await opening).stream?.[Symbol.asyncIterator]().return?.();
    await expect(stream.open(requestWith({}))).resolves.toHaveProperty("stream");
  });

  it.each(["0x1388", "5000:0x1388", '"5000"', "5000 ", "5e3", "-2", "5000, 5000"])(
    "refuses to begin at the end for whoever was told %p last",
    async (id) => {
      const stream = new BlockStream(contextWithoutNode(noRows, 7), options);
      const opening = stream.open(requestWith({ "last-event-id": id }));
      const details = { field: "Last-Event-ID" };
      await expect(opening).rejects.toMatchObject({ code: "INVALID_FIELD", details });
    },
  );

  it.each([`5:0x${"AB".repeat(32)}`, `5:0X${"ab".repeat(32)}`])("goes on behind %s", async (id) => {
    const hash = Buffer.alloc(32, 0xab);
    const rows = [5, 6].map((height) => ({ height, hash, time: new Date(0), transactions: 0 }));
    const known = { query: () => Promise.resolve([...rows] as never[]) };
    const stream = new BlockStream(contextWithoutNode(known, 7), options);
    const { stream: pieces } = await stream.open(requestWith({ "last-event-id": id }));
    const reading = pieces?.[Symbol.asyncIterator]();
    await reading?.next();
    const told = String((await reading?.next())?.value);
    await reading?.return?.();
    expect(told).toMatch(/^id: 6:0x(ab){32}\nevent: block\n/);
  });

  it("begins at the end for whoever was told nothing", async () => {
    const stream = new BlockStream(contextWithoutNode(noRows, 7), options);
    for (const headers of [{}, { "last-event-id": "" }]) {
      await expect(stream.open(requestWith(headers))).resolves.toHaveProperty("stream");
    }
  });

  it("has no more readers than it may have, and room again behind each that ends", async () => {
    const stream = new BlockStream(contextWithoutNode(noRows, 7), options);
    const first = (await stream.open(requestWith({}))).stream?.[Symbol.asyncIterator]();
    await first?.next();
    const code = "TOO_MANY_STREAMS";
    await expect(stream.open(requestWith({}))).rejects.toMatchObject({ code });
    await first?.return?.();
    await expect(stream.open(requestWith({}))).resolves.toHaveProperty("stream");
  });

  it("leaves nothing of readers at the process's signal, by which all of them end", async () => {
    const ending = new AbortController();
    const many = { maxReaders: 3, signal: ending.signal };
    const stream = new BlockStream(contextWithoutNode(noRows, 7), many);
    const read = async () => {
      const reader = (await stream.open(requestWith({}))).stream?.[Symbol.asyncIterator]();
      await reader?.next();
      return reader;
    };
    const before = leftBehind(ending.signal);
    for (let times = 0; times < 3; times += 1) await (await read())?.return?.();
    expect(leftBehind(ending.signal)).toBe(before);
    const readers = await Promise.all([read(), read()]);
    // One of them waits for news, the other one will ask for its next piece.
    const waiting = readers[0]?.next();
    ending.abort();
    expect(await waiting).toMatchObject({ done: true });
    expect(await readers[1]?.next()).toMatchObject({ done: true });
  });
});

describe("the places of a stream of blocks", () => {
  it("are not all of one client, whoever he says that he is behind his network", async () => {
    const noRows = { query: () => Promise.resolve([]) };
    const ending = new AbortController();
    const options = { maxReaders: 20, signal: ending.signal };
    const stream = new BlockStream(contextWithoutNode(noRows, 7), options);
    const { signal } = new AbortController();
    const read = async (remoteAddress: string) => {
      const reply = await stream.open(requestWith({}, signal, remoteAddress));
      const reader = reply.stream?.[Symbol.asyncIterator]();
      await reader?.next();
      return reader;
    };
    const code = "TOO_MANY_STREAMS";
    const first = await read("2001:db8:1:2::1");
    await read("2001:db8:1:2::2");
    await expect(read("2001:db8:1:2:3::3")).rejects.toMatchObject({ code });
    for (let count = 0; count < 10; count++) await read("127.0.0.1");
    await read("::ffff:192.0.2.1");
    await read("192.0.2.1");
    await expect(read("::ffff:192.0.2.1")).rejects.toMatchObject({ code });
    await first?.return?.();
    await expect(read("2001:db8:1:2:3::3")).resolves.toBeDefined();
  });
});

describe("tags of final things", () => {
  const route = (path: string, block: () => unknown): HttpRoute => {
    let height = 10;
    const handler = async () => ({ body: { meta: { indexedHeight: height++ }, block: block() } });
    return { method: "get", path, handler };
  };
  const asked = async (one: HttpRoute | undefined, known?: string) =>
    one?.handler(requestWith(known === undefined ? {} : { "if-none-match": known }));

  it("a block that is known is not sent again, whatever the index has got meanwhile", async () => {
    const [block] = withEntityTags([route("/v1/blocks/{id}", () => ({ height: 5 }))]);
    const first = await asked(block);
    const tag = first?.headers?.["etag"] ?? "";
    expect(tag).toMatch(/^W\/"[\w-]{43}"$/);
    expect(first?.body).toMatchObject({ block: { height: 5 } });
    for (const known of [tag, tag.slice(2), `"a", ${tag}`, "*"]) {
      const again = await asked(block, known);
      expect({ known, reply: again }).toEqual({
        known,
        reply: { status: 304, headers: { etag: tag, "cache-control": "no-cache" } },
      });
    }
    for (const known of ['"a"', tag.slice(3, -1), ""]) {
      expect({ known, body: (await asked(block, known))?.body }).toMatchObject({
        known,
        body: { block: { height: 5 } },
      });
    }
  });

  it("another block under the same name is sent", async () => {
    let height = 5;
    const [latest] = withEntityTags([route("/v1/blocks/{id}", () => ({ height: height++ }))]);
    const tag = (await asked(latest))?.headers?.["etag"] ?? "";
    expect((await asked(latest, tag))?.body).toMatchObject({ block: { height: 6 } });
  });

  it("what changes with every block has none", async () => {
    const [list] = withEntityTags([route("/v1/blocks", () => [])]);
    expect((await asked(list))?.headers).toBeUndefined();
  });
});

describe("an index that is not there yet", () => {
  it("is an answer, and no error of this program", () => {
    const reply = mapIndexerError(new IndexerError("NO_INDEX", "no block is indexed yet"));
    expect(reply).toMatchObject({ status: 503, isExpected: true });
    expect(mapIndexerError(new Error("x"))).not.toHaveProperty("isExpected");
  });
});

describe("a client that has left", () => {
  it("is no error of this program", () => {
    const { signal } = new AbortController();
    const leaving = new AbortController();
    leaving.abort(new DOMException("the client went away", "AbortError"));
    for (const { reason } of [leaving.signal, AbortSignal.any([signal, leaving.signal])]) {
      expect(mapIndexerError(reason)).toMatchObject({ status: 503, isExpected: true });
    }
  });
});

describe("an index that does not answer", () => {
  const told = (sqlState: string) => {
    const fault = new SqlError("DATABASE_UNAVAILABLE", "no", { details: { sqlState } });
    const { status, body, headers } = mapIndexerError(fault);
    return { status, headers, ...(body as { readonly code: string; readonly detail: string }) };
  };

  it("because too much was asked says so: to ask the same again helps nobody", () => {
    const { status, code, detail, headers } = told("57014");
    expect({ status, code }).toEqual({ status: 503, code: "ANSWER_TOO_SLOW" });
    expect(detail).toMatch(/longer than 15 s.*fromBlock/);
    // Whoever goes by the status and this alone would ask for it again and again.
    expect(headers).not.toHaveProperty("retry-after");
    const passing = told("57P01");
    expect(passing.detail).not.toMatch(/longer/);
    expect(passing).toMatchObject({ code: "UNAVAILABLE", headers: { "retry-after": "1" } });
  });
});
