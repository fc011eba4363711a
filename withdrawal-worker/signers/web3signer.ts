/**
 * Web3Signer over JSON-RPC: `eth_signTransaction`, `eth_sign` to see whether it signs at all, and no other
 * method. `eth_sendTransaction` would send what nobody has stored, and its retries choose nonces by
 * themselves. Web3Signer signs for the chain of its own settings whatever is asked for: the caller's check of
 * the chain id is what notices (its issue 977).
 */
import type { Address } from "../../chain/address.js";
import { errorMessage } from "../../chain/errors.js";
import { bytesToHex, hexToBytes, parseHex } from "../../chain/hex.js";
import { NodeFault, RpcError } from "../../rpc-client/errors.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { WorkerError } from "../errors.js";
import { differs } from "./check-signed.js";
import type { KeyHolder, TransactionIntent } from "./signer-port.js";

/** A signed transaction is some hundred bytes; its answer never comes near this. */
const MAX_ANSWER_BYTES = 65_536;

/** Requests at once: the signer works on several, and the order of answers is ours. */
const PARALLEL_REQUESTS = 16;

/** Opens no connection before the first intent. */
export function createWeb3Signer(options: {
  readonly url: string;
  readonly timeoutMs: number;
  /** The account that signs; the key is Web3Signer's. */
  readonly address: Address;
}): KeyHolder {
  const { address, url, timeoutMs } = options;
  const rpc = createJsonRpcClient({ url, timeoutMs, maxResponseBytes: MAX_ANSWER_BYTES });
  return {
    address,
    parallel: PARALLEL_REQUESTS,
    async signTransaction(intent, { signal }) {
      let answer: unknown;
      try {
        answer = await rpc.request("eth_signTransaction", [toRequest(intent, address)], { signal });
      } catch (cause) {
        throw meaningOf(cause, intent);
      }
      return readRaw(answer, intent);
    },
    async signText(text, { signal }) {
      const message = bytesToHex(Buffer.from(text, "utf8"));
      try {
        const answer = await rpc.request("eth_sign", [address, message], { signal });
        if (typeof answer === "string") return answer;
      } catch (cause) {
        if (cause instanceof NodeFault || cause instanceof RpcError) {
          throw unreachable(errorMessage(cause), cause);
        }
        throw cause;
      }
      throw unreachable("its answer is no signature");
    },
    close: async () => rpc.close(),
  };
}

function toRequest(intent: TransactionIntent, from: Address) {
  const quantity = (value: bigint) => `0x${value.toString(16)}`;
  return {
    from,
    to: intent.to,
    gas: quantity(intent.gasLimit),
    gasPrice: quantity(intent.gasPriceAtoken),
    value: quantity(intent.valueAtoken),
    nonce: quantity(intent.nonce),
    data: bytesToHex(intent.data),
  };
}

/** What broke its own protocol is a wrong answer; everything else on the wire says nothing. */
function meaningOf(cause: unknown, { nonce }: TransactionIntent): unknown {
  if (cause instanceof NodeFault) {
    if (cause.code === "BAD_ANSWER" || cause.code === "ANSWER_TOO_LARGE") {
      return differs(["answer"], nonce, cause);
    }
    return unreachable(errorMessage(cause), cause);
  }
  return cause instanceof RpcError ? unreachable(cause.nodeMessage, cause) : cause;
}

function unreachable(what: string, cause?: unknown): WorkerError {
  const message = `the signer did not sign: ${what}`;
  return new WorkerError("SIGNER_UNREACHABLE", message, { retriable: true, cause });
}

function readRaw(answer: unknown, { nonce }: TransactionIntent): Uint8Array {
  if (typeof answer !== "string") throw differs(["answer"], nonce);
  try {
    return hexToBytes(parseHex(answer));
  } catch (cause) {
    throw differs(["answer"], nonce, cause);
  }
}
