/** Transactions and evidence that come in by the consensus RPC: what is checked before they are taken. */
import { describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { parseHexBytes } from "../../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction, recoverSender } from "../../../../chain/transaction.js";
import { signWithCosmJs } from "../../../helpers/cosmos/cosmjs.js";
import { doubleVote, send, serverForTests } from "./asked-server.js";

const poor = new Wallet(`0x${"33".repeat(32)}`);

const server = serverForTests();
const { get, call } = server;

function wrap(raw: string, from?: Wallet): string {
  const tx = decodeTransaction(parseHexBytes(raw));
  const sender = from === undefined ? recoverSender(tx) : parseAddress(from.address);
  return Buffer.from(encodeSdkTransaction(tx, sender)).toString("base64");
}

/** What CosmJS signs without a message: a body that is left out, as it has nothing in it. */
function nothingAsked(): string {
  const phrase = "test test test test test test test test test test test junk";
  const [signed] = signWithCosmJs(phrase, [{ messages: [], chainId: "chain_6940-1" }]);
  return signed?.raw.toString("base64") ?? "";
}

describe("transactions on their way in", () => {
  it("are checked without being admitted", async () => {
    const cases: readonly (readonly [string, number, string])[] = [
      [wrap(await send(8)), 0, ""],
      [wrap(await send(0)), 3, "nonce too low: next nonce 8, tx nonce 0"],
      [wrap(await send(0, {}, poor)), 5, "insufficient funds for gas * price + value"],
      [wrap(await send(8, { chainId: 6941 })), 28, "invalid chain id for signer"],
      [wrap(await send(8, { gasLimit: 20_000n })), 11, "intrinsic gas too low"],
      [wrap(await send(8, { gasPrice: 0n })), 13, "gas price below minimum"],
      [wrap(await send(8), poor), 4, "the sender is not the signer"],
      [Buffer.from("nothing").toString("base64"), 2, "tx parse error"],
      [nothingAsked(), 18, "must contain at least one message"],
    ];
    for (const [tx, code, text] of cases) {
      const { result } = await call("check_tx", { tx });
      const { log } = result as { log: string };
      expect([text, (result as { code: number }).code, log]).toEqual([
        text,
        code,
        expect.stringContaining(text),
      ]);
    }
    expect(server.chain.pool.counts()).toEqual({ pending: 0, queued: 0 });
  });

  it("are refused with a code when they are broadcast in another's name", async () => {
    const { result } = await call("broadcast_tx_sync", { tx: wrap(await send(8), poor) });
    expect(result).toMatchObject({ code: 4, codespace: "sdk" });
    expect(server.chain.pool.counts().pending).toBe(0);
  });

  it("take evidence, and say what consensus thinks of it", async () => {
    const block = (await get("block?height=3")).result as {
      block: { evidence: { evidence: object[] } };
    };
    const [evidence] = block.block.evidence.evidence;
    expect((await call("broadcast_evidence", { evidence })).result).toHaveProperty("hash");
    expect(server.chain.received).toEqual([doubleVote(server.chain).evidence]);
    server.chain.reception = "invalid";
    expect((await call("broadcast_evidence", { evidence })).error?.data).toBe(
      "failed to add evidence: it is invalid",
    );
    for (const bad of [undefined, {}, { ...evidence, type: "x" }, { ...evidence, value: {} }]) {
      expect((await call("broadcast_evidence", { evidence: bad })).error?.code).toBe(-32602);
    }
  });
});
