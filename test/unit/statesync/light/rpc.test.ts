/** Answers of consensus RPC servers: CometBFT's own JSON is read, everything else is refused. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { createServer, type Server } from "node:http";
import { hashConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import type { LightBlock } from "../../../../chain/consensus/light.js";
import { hasSamePriorities } from "../../../../node/statesync/light/light-validators.js";
import { rpcProvider } from "../../../../node/statesync/light/light-rpc.js";
import { commitJson, headerJson, validatorJson } from "../../../../node/rpc/comet/json/encode.js";
import {
  lightBlock,
  lightChain,
  lightKeys,
  lightSet,
  START_NS,
} from "../../../helpers/chains/light-blocks.js";

interface Call {
  readonly method: string;
  readonly params: Readonly<Record<string, string>>;
}

const signal = new AbortController().signal;
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that answers calls with a result, or with a raw text. */
async function serve(answer: (call: Call) => unknown, status = 200): Promise<string> {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const found = answer(JSON.parse(body) as Call);
      const isRaw = typeof found === "string";
      response.statusCode = status;
      response.end(isRaw ? found : JSON.stringify({ jsonrpc: "2.0", id: 1, result: found }));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return `127.0.0.1:${address.port}`;
}

const keys = lightKeys(130);
const many = lightBlock({
  keys,
  validators: lightSet(keys, 5n, 1n),
  height: 9,
  timeNs: START_NS,
  signers: [20, 130],
});
const chain = lightChain(30, { validators: 2, change: 0 });

function answerOf(block: LightBlock, { method, params }: Call): unknown {
  if (method === "commit") {
    return {
      signed_header: { header: headerJson(block.header), commit: commitJson(block.commit) },
      canonical: true,
    };
  }
  const [page, perPage] = [Number(params["page"]), Number(params["per_page"])];
  const list = block.validators.validators;
  const shown = list.slice((page - 1) * perPage, page * perPage).map(validatorJson);
  return {
    block_height: `${block.header.height}`,
    validators: shown,
    count: `${shown.length}`,
    total: `${list.length}`,
  };
}

function metas({ params }: Call) {
  const heights = [];
  for (let at = Number(params["maxHeight"]); at >= Number(params["minHeight"]); at--)
    heights.push(at);
  return heights.slice(0, 20).flatMap((height) => {
    const header = chain.get(height)?.header;
    return header === undefined ? [] : [{ header: headerJson(header) }];
  });
}

describe("a server", () => {
  it("is read whole: header, commit, and validators over pages", async () => {
    const address = await serve((call) => answerOf(many, call));
    const read = await rpcProvider(`tcp://${address}`).lightBlock(9, signal);
    expect(hashConsensusHeader(read.header)).toBe(hashConsensusHeader(many.header));
    expect(read.commit).toEqual(many.commit);
    expect(read.validators.size).toBe(130);
    expect(hasSamePriorities(read.validators, many.validators)).toBe(true);
    expect(read.validators.proposer).toEqual(many.validators.proposer);
  });

  it("gives headers downwards, all that were asked for", async () => {
    const address = await serve((call) => ({ block_metas: metas(call) }));
    const found = await rpcProvider(address).headers({ from: 25, to: 11 }, signal);
    expect(found.map(({ height }) => height)).toEqual(Array.from({ length: 15 }, (_, i) => 25 - i));
    const missing = rpcProvider(address).headers({ from: 35, to: 20 }, signal);
    await expect(missing).rejects.toMatchObject({ code: "SERVER_UNAVAILABLE" });
  });

  it("without the height may have it later", async () => {
    const error = { code: -32603, message: "Internal error", data: "height 9 must be less" };
    const address = await serve(() => JSON.stringify({ jsonrpc: "2.0", id: 1, error }));
    await expect(rpcProvider(address).lightBlock(9, signal)).rejects.toMatchObject({
      code: "SERVER_UNAVAILABLE",
      retriable: true,
      message: expect.stringContaining("height 9 must be less"),
    });
    await expect(rpcProvider("127.0.0.1:1").lightBlock(9, signal)).rejects.toMatchObject({
      code: "SERVER_UNAVAILABLE",
    });
  });

  const refusals: readonly (readonly [number, string])[] = [
    [503, "<html>Service Unavailable</html>"],
    [502, ""],
    [429, '{"message":"too many requests"}'],
    [429, '{"error":"too many requests"}'],
  ];

  it.each(refusals)("that is busy, %i with %j, may answer later", async (status, text) => {
    const provider = rpcProvider(await serve(() => text, status));
    await expect(provider.lightBlock(9, signal)).rejects.toMatchObject({
      code: "SERVER_UNAVAILABLE",
      retriable: true,
      message: expect.stringContaining(`status ${status}`),
      details: { server: provider.name },
    });
  });

  it("is heard where its words come with a status of failure, as CometBFT's do", async () => {
    const error = { code: -32603, message: "Internal error", data: "height 9 must be less" };
    const address = await serve(() => JSON.stringify({ jsonrpc: "2.0", id: 1, error }), 500);
    await expect(rpcProvider(address).lightBlock(9, signal)).rejects.toMatchObject({
      code: "SERVER_UNAVAILABLE",
      message: expect.stringContaining("height 9 must be less"),
    });
  });

  const wrong: readonly (readonly [string, (call: Call) => unknown])[] = [
    ["no JSON", () => "<html>"],
    ["an empty answer", () => ({})],
    ["more than is read", () => `"${"x".repeat(9_000_000)}"`],
    ["another height", (call) => answerOf(lightBlockAt(8), call)],
    [
      "an address that is not the key's",
      (call) =>
        JSON.parse(JSON.stringify(answerOf(many, call)).replace(/"address":"../g, '"address":"00')),
    ],
    [
      "a page without end",
      (call) => {
        const found = answerOf(many, call);
        return call.method === "commit" ? found : { ...(found as object), validators: [] };
      },
    ],
    [
      "a short signature",
      (call) =>
        JSON.parse(
          JSON.stringify(answerOf(many, call)).replace(/"signature":"[^"]+"/, '"signature":"AAAA"'),
        ),
    ],
  ];

  it.each(wrong)("that answers %s is not believed", async (_name, answer) => {
    const provider = rpcProvider(await serve(answer));
    await expect(provider.lightBlock(9, signal)).rejects.toMatchObject({
      code: "SERVER_ANSWER_INVALID",
      details: { server: provider.name },
    });
  });
});

function lightBlockAt(height: number): LightBlock {
  return { ...many, header: { ...many.header, height } };
}
