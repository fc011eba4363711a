import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";
import { getAddress } from "ethers";
import { SYSTEM_ADDRESSES } from "../../../../chain/networks.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import {
  BLOCK_MISSING_NUMBERS,
  SERVER_STATE_NUMBERS,
} from "../../../../rpc-client/data-api/data-api-client.js";
import {
  ERROR_TABLE,
  listedErrors,
  severityOf,
  SidecarError,
  toErrorResponse,
} from "../../../../sidecar/rosetta/errors.js";
import { KIT_VERSION } from "../../../../chain/version.js";
import { requestError } from "../../../../runtime/http/http-errors.js";
import { call, offlineServer } from "../servers.js";

const page = readFileSync(
  fileURLToPath(new URL("../../../../docs/rosetta-errors.md", import.meta.url)),
  "utf8",
);

describe("the error table", () => {
  it("has every number and message once, and no number moved", () => {
    const listed = listedErrors();
    expect(new Set(listed.map((error) => error.code)).size).toBe(listed.length);
    expect(new Set(listed.map((error) => error.message)).size).toBe(listed.length);
    expect(listed.every((error) => !("details" in error))).toBe(true);
    // Numbers are for ever: this list may only grow.
    expect(listed.map((error) => `${error.code} ${error.message} ${error.retriable}`)).toEqual([
      "1 invalid request false",
      "2 unknown network false",
      "3 unavailable offline false",
      "4 not available false",
      "5 coins not supported false",
      "6 endpoint not found false",
      "7 request too large false",
      "8 server busy true",
      "99 internal error false",
      "101 node unreachable true",
      "102 node timed out true",
      "103 node syncing true",
      "104 node busy true",
      "105 node on another chain false",
      "106 node fault false",
      "107 node refused false",
      "108 node halted true",
      "109 index behind true",
      "110 index write failed false",
      "201 block not found false",
      "202 block above tip true",
      "203 block identifier mismatch false",
      "204 block pruned false",
      "205 transaction not found false",
      "206 invalid account false",
      "207 sub-account not supported false",
      "208 unknown currency false",
      "209 journal inconsistent false",
      "210 transaction not in mempool false",
      "211 call method unknown false",
      "212 call parameters invalid false",
      "213 call failed false",
      "214 search too broad false",
      "215 events out of range true",
      "216 transaction not mined true",
      "301 invalid public key false",
      "302 invalid operations false",
      "303 operation not supported false",
      "304 invalid metadata false",
      "305 invalid unsigned transaction false",
      "306 invalid signed transaction false",
      "307 wrong chain id false",
      "308 transaction type not supported false",
      "309 transaction unprotected false",
      "310 invalid signature false",
      "311 signer mismatch false",
      "312 signing payload mismatch false",
      "313 max fee exceeded false",
      "314 insufficient funds false",
      "315 call reverted false",
      "316 token unavailable false",
      "401 nonce too low false",
      "402 nonce too high false",
      "403 replacement underpriced false",
      "404 gas price too low false",
      "405 intrinsic gas too low false",
      "406 gas limit exceeded false",
      "407 mempool full true",
      "408 account limit exceeded true",
      "409 transaction too large false",
      "410 transaction refused false",
    ]);
  });

  it("is the table in docs/rosetta-errors.md, row by row", () => {
    const rows = Object.entries(ERROR_TABLE)
      .toSorted(([, left], [, right]) => left.number - right.number)
      .map(([name, { number, message, retriable, description }]) =>
        ["", number, `\`${name}\``, message, retriable ? "yes" : "no", description, ""].join(" | "),
      )
      .map((row) => row.trim());
    const written = page.split("\n");
    expect(written.filter((line) => /^\| [0-9]/.test(line))).toEqual(rows);
  });

  it("is explained without the advice of another nonce, by which a wish is paid twice", () => {
    const sentences = page.replaceAll("\n", " ").split(/(?<=\.) /);
    const advised = sentences.filter((one) => /(another|other|new|next) nonce/.test(one));
    expect(advised).toEqual([expect.stringContaining("(400-499) never another nonce")]);
    const beforeRows = page.slice(0, page.indexOf("| 1 |"));
    const behindRows = page.slice(page.indexOf("| 410 |"));
    const chapter = "](guide/custodians.md#when-something-is-refused)";
    expect(beforeRows).toContain(chapter);
    expect(behindRows).toContain(chapter);
  });

  it("is what /network/options lists, with the whole vocabulary", async () => {
    const { body } = await call(offlineServer(), "/network/options");
    const { allow, version } = body;
    expect(allow.errors).toEqual(listedErrors());
    expect(allow.errors).toHaveLength(Object.keys(ERROR_TABLE).length);
    expect(allow.operation_types).toEqual(expect.arrayContaining(["CALL", "FEE_BURN", "GENESIS"]));
    expect(new Set(allow.operation_types).size).toBe(allow.operation_types.length);
    expect(allow.balance_exemptions).toEqual([]);
    expect(version.rosetta_version).toBe("1.5.1");
    expect(version.metadata).toEqual({
      evm_chain_id: "6940",
      cosmos_chain_id: "chain_6940-1",
      system_accounts: {
        fee_collector: getAddress(SYSTEM_ADDRESSES.feeCollector),
        treasury: getAddress(SYSTEM_ADDRESSES.treasury),
        validators_pool: getAddress(SYSTEM_ADDRESSES.validatorsPool),
        development_fund: getAddress(SYSTEM_ADDRESSES.developmentFund),
      },
    });
  });

  it("keeps its message and retriable whatever the details", () => {
    const { status, body } = toErrorResponse(new SidecarError("BLOCK_NOT_FOUND", { index: 1 }));
    expect(status).toBe(500);
    expect(body).toEqual({
      ...listedErrors().find(({ code }) => code === 201),
      details: { index: 1 },
    });
  });

  it("never tells a client what an unexpected fault said", () => {
    const { body } = toErrorResponse(new Error("secret at /root/key"));
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(body.code).toBe(99);
  });

  it("says that a large request may be sent again when there is room for it", () => {
    const fault = requestError(429, "too many large requests at once");
    expect(toErrorResponse(fault).body.code).toBe(ERROR_TABLE.SERVER_BUSY.number);
  });

  it("keeps the numbers that the block reader knows", () => {
    const { BLOCK_NOT_FOUND, BLOCK_ABOVE_TIP } = ERROR_TABLE;
    expect(BLOCK_MISSING_NUMBERS).toEqual(
      new Set([BLOCK_NOT_FOUND.number, BLOCK_ABOVE_TIP.number]),
    );
    const { NODE_WRONG_CHAIN, NODE_FAULT, NODE_REFUSED, INDEX_WRITE_FAILED } = ERROR_TABLE;
    const { BLOCK_PRUNED, JOURNAL_INCONSISTENT } = ERROR_TABLE;
    expect(SERVER_STATE_NUMBERS).toEqual(
      new Set([
        NODE_WRONG_CHAIN.number,
        NODE_FAULT.number,
        NODE_REFUSED.number,
        INDEX_WRITE_FAILED.number,
        BLOCK_PRUNED.number,
        JOURNAL_INCONSISTENT.number,
      ]),
    );
  });

  it("recognises faults of the node by their code", () => {
    const fault = new NodeFault("NODE_TIMEOUT", "late", { retriable: true });
    expect(toErrorResponse(fault).body.code).toBe(ERROR_TABLE.NODE_TIMEOUT.number);
  });

  it("says of work that was ended that it may be asked for again", () => {
    const ended = new DOMException("the process is stopping", "AbortError");
    const { body } = toErrorResponse(ended);
    expect(body).toMatchObject({ code: 109, retriable: true, details: { reason: "stopping" } });
  });

  it("matter by what they are, not by their status", () => {
    const seen = [
      new SidecarError("BLOCK_ABOVE_TIP"),
      new SidecarError("JOURNAL_INCONSISTENT"),
      new SidecarError("INDEX_WRITE_FAILED"),
      new NodeFault("NODE_UNREACHABLE", "gone", { retriable: true }),
      new NodeFault("BAD_ANSWER", "odd"),
      new Error("a bug"),
      new DOMException("the client went away", "AbortError"),
    ].map(severityOf);
    expect(seen).toEqual(["debug", "error", "error", "warn", "error", "error", "debug"]);
  });

  it("tells the kit's own version", () => {
    const file = new URL("../../../../package.json", import.meta.url);
    expect(JSON.parse(readFileSync(file, "utf8")).version).toBe(KIT_VERSION);
  });
});
