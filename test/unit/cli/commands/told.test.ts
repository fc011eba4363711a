/**
 * What commands tell a person: deposits by the ids of decisions, sides of an adjustment, and why they
 * failed.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { createAuditNode } from "../../../../cli/audit/audit-node.js";
import { createProgram } from "../../../../cli/program/program.js";
import { sentenceOf } from "../../../../cli/errors.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { toSqlError } from "../../../../runtime/sql/sql-errors.js";
import { RpcFault, startFakeNode } from "../../../helpers/chains/fake-node.js";
import { closers, listen, newFolder } from "../opened.js";

it("lists deposits by the ids that decisions about them take", async () => {
  const home = newFolder();
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "api.key"), "key\n", { mode: 0o600 });
  const hash = `0x${"ab".repeat(32)}`;
  const address = `0x${"0c".repeat(20)}`;
  const deposit = {
    id: "7-0-3",
    address,
    asset: "TOKEN",
    amountUnits: `${10n ** 18n}`,
    status: "suspense",
    blockNumber: 7,
    blockHash: hash,
    txHash: hash,
    confirmations: 2,
  };
  const page = JSON.stringify({ deposits: [deposit], next: null });
  const api = createHttpServer((_request, response) => void response.end(page));
  const env = { CAUSEWAY_WATCHER_API_LISTEN: `127.0.0.1:${await listen(api)}` };
  const list = async (typed: string) => {
    const printed: string[] = [];
    const program = createProgram({
      version: "0",
      env,
      signal: new AbortController().signal,
      print: (line) => printed.push(line),
      warn: () => undefined,
      setExitCode: () => undefined,
    });
    const words = ["deposits", "list", "--address", typed, "--home", home];
    await program.parseAsync(words, { from: "user" });
    return printed;
  };
  const line = `  7-0-3  block 7  ${hash}  1 TOKEN  suspense`;
  expect(await list(address)).toEqual([line]);
  // Customers name their address as their wallet shows it.
  expect(await list(toBech32(parseAddress(address)))).toEqual([line]);
  await expect(list("0x12")).rejects.toThrow(
    '--address must be an account, addr1... or 0x hex, not "0x12".',
  );
});

it("says on which side of an adjustment a customer gets more, and on which less", () => {
  const program = createProgram({
    version: "0",
    env: {},
    signal: new AbortController().signal,
    print: () => undefined,
    warn: () => undefined,
    setExitCode: () => undefined,
  });
  const child = (of: typeof program, name: string) =>
    of.commands.find((command) => command.name() === name) ?? program;
  const help = child(child(program, "ledger"), "adjust").helpInformation().replace(/\s+/g, " ");
  // Who reads "debit: the account that gets more" takes from the customer whom he means to give.
  expect(help).toMatch(/--debit <code> [^-]*liability or revenue that falls/);
  expect(help).toMatch(/--credit <code> liability \(such as a customer's\) or revenue that rises/);
});

describe("why a command failed", () => {
  it("is told with what to do where the node has no proofs of so old a block any more", async () => {
    const node = await startFakeNode({
      eth_getProof: () => {
        throw new RpcFault(4444, "pruned history unavailable");
      },
    });
    closers.push(() => node.close());
    const audited = createAuditNode(
      createJsonRpcClient({ url: node.url }),
      new AbortController().signal,
    );
    const query = { address: parseAddress(`0x${"0c".repeat(20)}`), slots: [] };
    await expect(audited.proofs([query], 7)).rejects.toMatchObject({
      code: "STATE_UNPROVEN",
      message: expect.stringMatching(
        /^The node refuses eth_getProof: pruned.*pruning = .*later block/,
      ),
    });
  });

  it("is told with what to do where no node answers", async () => {
    const node = createEvmClient(createJsonRpcClient({ url: "http://127.0.0.1:1" }));
    const fault: unknown = await node
      .blockNumber({ signal: new AbortController().signal })
      .catch((error: unknown) => error);
    expect(sentenceOf(fault)).toBe(
      "no connection to 127.0.0.1:1 (ECONNREFUSED). Start the kit, or the node that the settings name.",
    );
  });

  it("is told with what to do where the database is another home's", () => {
    // As PostgreSQL refuses the password of another kit's cluster (SQLSTATE 28P01).
    const refused = Object.assign(new Error('password authentication failed for user "causeway"'), {
      code: "28P01",
    });
    expect(sentenceOf(toSqlError(refused))).toBe(
      'DATABASE_FAULT: password authentication failed for user "causeway". Another home\'s kit may ' +
        "have this port: check --home and --port-offset, or what DATABASE_URL names.",
    );
    const other = Object.assign(new Error("division by zero"), { code: "22012" });
    expect(sentenceOf(toSqlError(other))).toBe("DATABASE_FAULT: division by zero");
  });
});
