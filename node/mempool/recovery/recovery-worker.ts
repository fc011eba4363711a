/** Entry of the recovery thread: answers one buffer of signatures after the other. */
import { parentPort } from "node:worker_threads";
import { answerInPlace, type RecoveryAnswer, type RecoveryMessage } from "./protocol.js";

function post(answer: RecoveryAnswer, transfer: readonly ArrayBuffer[]): void {
  parentPort?.postMessage(answer, transfer);
}

parentPort?.on("message", (message: RecoveryMessage) => {
  answerInPlace(message.kind, message.records);
  post(message, [message.records.buffer]);
});
post("ready", []);
