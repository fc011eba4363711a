/** `/construction/submit`: bytes that are sent once, however often they come, and refusals of the node. */
import { beforeEach, describe, expect, it, jest } from "@jest/globals";
import { Transaction, Wallet } from "ethers";
import { BOB } from "../../../helpers/chains/journal-chain.js";
import { call, onlineServer } from "../servers.js";
import { sidecarForTests, TO } from "./asked-sidecar.js";

const WALLET = new Wallet(`0x${"11".repeat(32)}`);
const sidecar = sidecarForTests();
const { replace, refuse } = sidecar;

describe("/construction/submit", () => {
  let raw: string;
  let hash: string;

  beforeEach(async () => {
    raw = await WALLET.signTransaction({
      type: 0,
      chainId: 6940,
      to: TO,
      value: 1n,
      nonce: 5,
      gasLimit: 21_000n,
      gasPrice: 25_000_000n,
    });
    hash = Transaction.from(raw).hash ?? "";
  });

  const submit = (text = raw) =>
    call(sidecar.online.server, "/construction/submit", { signed_transaction: text });

  it("sends the raw bytes and answers the hash, with or without the prefix", async () => {
    for (const text of [raw, raw.slice(2)]) {
      const { status, body } = await submit(text);
      expect([status, body]).toEqual([200, { transaction_identifier: { hash } }]);
    }
    const sent = sidecar.node.calls.filter((made) => made.method === "eth_sendRawTransaction");
    expect(sent.map((made) => made.params)).toEqual([[raw], [raw]]);
  });

  const receipt = () => ({
    transactionHash: hash,
    blockHash: `0x${"ab".repeat(32)}`,
    blockNumber: "0x2",
    transactionIndex: "0x0",
    from: WALLET.address,
    to: BOB,
    contractAddress: null,
    status: "0x1",
    gasUsed: "0x5208",
    effectiveGasPrice: "0x17d7840",
  });

  it("succeeds again for mined bytes whose block the node has deleted, as the index knows them", async () => {
    refuse("eth_sendRawTransaction", -32000, "nonce too low: next nonce 6, tx nonce 5");
    replace("eth_getTransactionReceipt", () => null);
    const place = { height: 2, position: 0 };
    const placeOf = jest.spyOn(sidecar.online.index.blocks, "placeOf").mockReturnValue(place);
    const { status, body } = await submit();
    expect([status, body]).toEqual([200, { transaction_identifier: { hash } }]);
    expect(placeOf.mock.calls).toEqual([[hash]]);
    placeOf.mockRestore();
    expect((await submit()).body.code).toBe(401);
  });

  it("succeeds again for bytes that the pool or a block already has", async () => {
    refuse("eth_sendRawTransaction", -32000, "already known");
    expect((await submit()).status).toBe(200);
    refuse("eth_sendRawTransaction", -32000, "nonce too low: next nonce 6, tx nonce 5");
    expect((await submit()).body.code).toBe(401);
    // Once mined, whatever else the node has against the bytes does not matter any more.
    for (const message of ["nonce too low: next nonce 6", "insufficient funds", "txpool is full"]) {
      refuse("eth_sendRawTransaction", -32000, message);
      replace("eth_getTransactionReceipt", receipt);
      const { status, body } = await submit();
      expect([message, status, body]).toEqual([message, 200, { transaction_identifier: { hash } }]);
    }
  });

  it.each([
    ["nonce too high: next nonce 6, tx nonce 99999", 402, false],
    ["replacement transaction underpriced", 403, false],
    ["transaction gas price below minimum: gas tip cap 1, minimum needed 2", 404, false],
    ["intrinsic gas too low: gas 20000, minimum needed 21000", 405, false],
    ["exceeds block gas limit", 406, false],
    ["txpool is full", 407, true],
    ["account limit exceeded", 408, true],
    ["insufficient funds for gas * price + value: balance 0, tx cost 1, overshot 1", 314, false],
    ["invalid sender: invalid chain id for signer: have 6940 want 1", 105, false],
    ["oversized data: transaction size 140000, limit 131072", 409, false],
    ["the node is halted and cannot accept transactions", 108, true],
    ["something else", 410, false],
  ])("names the refusal %j", async (message, code, retriable) => {
    refuse("eth_sendRawTransaction", -32000, message);
    const { status, body } = await submit();
    expect([status, body.code, body.retriable]).toEqual([500, code, retriable]);
    expect(body.details).toEqual({ reason: message });
  });

  it.each<[string, () => unknown, number, boolean]>([
    ["that is behind", () => replace("eth_syncing", () => ({ highestBlock: "0x9" })), 103, true],
    ["of another chain", () => replace("eth_chainId", () => "0x1b1d"), 105, false],
  ])("sends nothing to a node %s", async (_name, arrange, code, retriable) => {
    arrange();
    const { body } = await submit();
    expect([body.code, body.retriable]).toEqual([code, retriable]);
    expect(sidecar.node.calls.map((made) => made.method)).not.toContain("eth_sendRawTransaction");
  });

  it("tells that the node has no time or is away", async () => {
    refuse("eth_sendRawTransaction", -32005, "limit exceeded");
    expect((await submit()).body).toMatchObject({ code: 104, retriable: true });
    const away = onlineServer("http://127.0.0.1:1");
    const fields = { signed_transaction: raw };
    const { body } = await call(away.server, "/construction/submit", fields);
    expect(body).toMatchObject({ code: 101, retriable: true });
    await away.rpc.close();
  });

  it("does not believe a node that answers another hash", async () => {
    replace("eth_sendRawTransaction", () => `0x${"ab".repeat(32)}`);
    expect((await submit()).body.code).toBe(106);
  });

  it("does not send what it would not parse", async () => {
    const foreign = await WALLET.signTransaction({ type: 0, chainId: 6941, to: TO });
    expect((await submit(foreign)).body.code).toBe(307);
    expect(sidecar.node.calls.map((made) => made.method)).not.toContain("eth_sendRawTransaction");
  });
});
