/** Simulated blocks as JSON text: blocks in their usual shape, with the outcome of each call. */
import { EVM_ERROR_NUMBERS } from "../../../../chain/evm/evm-failure.js";
import { revertText } from "../../../../chain/evm/revert-reason.js";
import { bytesToHex, toQuantity } from "../../../../chain/hex.js";
import { blockJson, logJson, placeOf } from "../../../view/evm-json.js";
import type { AnswerJson } from "../call-port.js";
import type { SimulatedBlock, SimulatedCall } from "./simulated-block.js";

/**
 * The answer of eth_simulateV1.
 * @param isFull with whole transactions in place of their hashes
 */
export function simulationJson(blocks: readonly SimulatedBlock[], isFull: boolean): AnswerJson {
  const texts = blocks.map((block) => simulatedBlockJson(block, isFull));
  return new TextEncoder().encode(`[${texts.join(",")}]`);
}

function simulatedBlockJson({ block, calls }: SimulatedBlock, isFull: boolean): string {
  const place = placeOf(block);
  let logIndex = 0;
  const texts = calls.map((call, transactionIndex) => {
    const mined = block.transactions[transactionIndex];
    if (mined === undefined) throw new Error("a simulated call has no transaction");
    const at = { place, transactionHash: mined.tx.hash, transactionIndex };
    const logs = call.logs.map((log) => logJson(log, { ...at, logIndex: logIndex++ }));
    return callJson(call, logs);
  });
  return `${blockJson(block, isFull).slice(0, -1)},"calls":[${texts.join(",")}]}`;
}

function callJson({ result, maxUsedGas }: SimulatedCall, logs: readonly string[]): string {
  const { outcome, gasUsed } = result;
  // What a REVERT gave back is its error's data.
  const returnData = outcome === "success" ? bytesToHex(result.returnData) : "0x";
  const error = outcome === "success" ? "" : `,"error":${JSON.stringify(errorOf(result))}`;
  return (
    `{"returnData":"${returnData}","logs":[${logs.join(",")}],"gasUsed":"${toQuantity(gasUsed)}",` +
    `"maxUsedGas":"${toQuantity(maxUsedGas)}",` +
    `"status":"${outcome === "success" ? "0x1" : "0x0"}"${error}}`
  );
}

/** Failures are part of an answer here; those that are no reverts have a number of their own. */
function errorOf(result: Exclude<SimulatedCall["result"], { outcome: "success" }>) {
  if (result.outcome === "error") {
    return { message: result.error, code: EVM_ERROR_NUMBERS.failedInSimulation };
  }
  const { returnData } = result;
  const code = EVM_ERROR_NUMBERS.reverted;
  return { message: revertText(returnData), code, data: bytesToHex(returnData) };
}
