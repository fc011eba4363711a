import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { parseAddress, toBech32, toChecksumAddress } from "../../../../chain/address.js";
import { ConfigError } from "../../../../runtime/config/config.js";
import { homePaths } from "../../../../cli/home/home.js";
import { planChain } from "../../../../cli/home/network/attach.js";
import { runCommand } from "../../../helpers/processes/command-line.js";

it("tells of a node's URL that is wrong, or of what answers there, no password and no key", async () => {
  const server = createServer((_request, response) => response.end("{}"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const place = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = (node: string) => runCommand(tmpdir(), ["query", "supply", "--node", node]);
  const answered = await ask(`http://ann:s3cret@${place}/s3cret`);
  expect(answered.err).toContain(`http://***@${place}/*** does not answer abci_query`);
  const wrong = await ask(`htp://ann:s3cret@${place}`);
  expect(wrong.err).toContain(`not "htp://***@${place}"`);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const nodeUrl = "https://ann:s3cret@node.example:100000/s3cret";
  try {
    planChain({ nodeUrl }, homePaths("/nonexistent"), {});
    throw new Error("a wrong URL was taken");
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toContain(`--node-url = "https://***@node.example:100000/***"`);
    expect(String(error)).not.toContain("s3cret");
  }
});

it("asks for --node on a home without a node, where another chain's may listen", async () => {
  const home = mkdtempSync(join(tmpdir(), "causeway-node-flags-"));
  mkdirSync(join(home, "config"));
  const genesisHash = `0x${"ab".repeat(32)}`;
  const origin = { kind: "remote", network: "testnet", genesisHash, isComplete: true };
  writeFileSync(join(home, "config", "chain.json"), JSON.stringify(origin));
  const key = join(home, "some.key");
  writeFileSync(key, `0x${"11".repeat(32)}\n`, { mode: 0o600 });
  const send = ["tx", "bank", "send", `0x${"22".repeat(20)}`, "1atoken", "--from", key, "--yes"];
  for (const words of [send, ["query", "supply"]]) {
    const refused = await runCommand(home, words);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("--node must name the node's consensus RPC");
  }
  rmSync(home, { recursive: true });
});

it("asks for the transaction of a sequence by the one spelling that events have of an account", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    request.setEncoding("utf8").on("data", (text: string) => asked.push(text));
    request.on("end", () => response.end("{}"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const node = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = (account: string, sequence: string) => {
    const words = ["query", "tx", "--type=acc_seq", `${account}/${sequence}`, "--node", node];
    return runCommand(tmpdir(), words);
  };
  const address = parseAddress(`0x${"ab".repeat(20)}`);
  const account = toBech32(address);
  const mistyped = await ask(`${account.slice(0, -1)}${account.endsWith("q") ? "p" : "q"}`, "7");
  expect([mistyped.code, mistyped.err]).toEqual([1, expect.stringContaining("must be an account")]);
  expect(asked).toEqual([]);
  for (const spelling of [account, address, toChecksumAddress(address)]) {
    await ask(spelling, "07");
    const { params } = JSON.parse(asked.pop() ?? "");
    const query = Buffer.from(params.data, "hex").toString("latin1");
    expect([spelling, query]).toEqual([spelling, expect.stringContaining(`'${account}/7'`)]);
  }
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
