/** What a reverted call said, in go-ethereum's words. */
import { bytesToHex } from "../../../chain/hex.js";
import { revertReason } from "../../../chain/revert-reason.js";
import { RpcFault } from "./errors.js";

/** The error of a reverted call: code 3, the reason where it can be read, the bytes as data. */
export function revertFault(returnData: Uint8Array): RpcFault {
  const reason = revertReason(returnData);
  const message = reason === undefined ? "execution reverted" : `execution reverted: ${reason}`;
  return new RpcFault("EXECUTION_REVERTED", message, bytesToHex(returnData));
}
