/** Files of proofs, which others made: what is no file, or has no end, is refused within bounds. */
import fs from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { headerSource } from "../../../../cli/audit/balance/collect.js";
import { readNodeStatus } from "../../../../cli/probe/node-status.js";
import { readProofFile } from "../../../../cli/audit/balance/proof-source.js";
import { systemClock } from "../../../../runtime/process/clock.js";

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-proof-"));
});
afterAll(() => {
  fs.rmSync(folder, { recursive: true, force: true });
});

const refused = (reason: RegExp) => ({
  code: "BUNDLE_UNREADABLE",
  message: expect.stringMatching(reason),
});

it("is read to its last byte, and not beyond what a proof may have", async () => {
  const file = path.join(folder, "proof.json");
  fs.writeFileSync(file, "äöü".repeat(50_000));
  expect(await readProofFile(file, 300_000)).toBe("äöü".repeat(50_000));
  await expect(readProofFile(file, 299_999)).rejects.toMatchObject(refused(/too long for a proof/));
  for (const missing of [path.join(folder, "none.json"), folder]) {
    await expect(readProofFile(missing, 1)).rejects.toMatchObject(refused(/^Cannot read /));
  }
});

it("is not read for ever where it is a link to what has no end", async () => {
  const link = path.join(folder, "endless.json");
  fs.symlinkSync("/dev/zero", link);
  await expect(readProofFile(link, 1_048_576)).rejects.toMatchObject(
    refused(/too long for a proof/),
  );
});

it("is collected of a node below a path, whose key no message tells", async () => {
  const asked: string[] = [];
  const server = http.createServer(({ url = "" }, response) => {
    asked.push(url);
    response.end(url.includes("height=8") ? "{}" : '{"result":{"total":"1"}}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { signal } = new AbortController();
  try {
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/s3cret/comet/?key=s3cret`;
    const source = headerSource({ url, oldestHeight: async () => 1, signal });
    await source.lightBlock(7);
    expect(asked).toEqual([
      "/s3cret/comet/commit?key=s3cret&height=7",
      "/s3cret/comet/validators?key=s3cret&height=7&page=1&per_page=100",
    ]);
    const status = () => readNodeStatus(url, { clock: systemClock, signal });
    for (const ask of [() => source.lightBlock(8), status]) {
      await expect(ask()).rejects.toMatchObject({
        code: "CLIENT_FAILED",
        message: expect.not.stringContaining("s3cret"),
      });
    }
    expect(asked.at(-1)).toBe("/s3cret/comet/status?key=s3cret");
  } finally {
    server.close();
  }
});
