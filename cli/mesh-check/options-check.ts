/** `/network/options` by the asserter's rules: what blocks are then held against. */
import {
  readBoolean,
  readCount,
  readList,
  readObject,
  readOptional,
  readString,
} from "../../rpc-client/answer-fields.js";
import type { FaultList } from "./faults.js";

/** The vocabulary that a server promises. */
export interface Allowed {
  /** Status -> whether it moved anything. */
  readonly statuses: ReadonlyMap<string, boolean>;
  readonly types: ReadonlySet<string>;
  readonly callMethods: ReadonlySet<string>;
  readonly blockHashCase: string | undefined;
  readonly transactionHashCase: string | undefined;
  /** First block whose timestamp must be a real one. */
  readonly timestampStartIndex: number;
}

/** Untrusted reply of /network/options. Throws BAD_ANSWER where its shape is wrong. */
export function parseOptions(reply: unknown, faults: FaultList): Allowed {
  const allow = readObject(readObject(reply, "options")["allow"], "allow");
  const statusList = readList(allow["operation_statuses"], "operation_statuses").map((entry) => {
    const status = readObject(entry, "operation status");
    return [
      readString(status["status"], "status"),
      readBoolean(status["successful"], "successful"),
    ] as const;
  });
  const typeList = readTexts(allow["operation_types"], "operation_types");
  const fault = (message: string) =>
    faults.add({ code: "NETWORK_OPTIONS", blockIndex: undefined, message });
  if (!statusList.some(([, isSuccessful]) => isSuccessful)) fault("no status is successful");
  checkNames(
    "operation status",
    statusList.map(([status]) => status),
    fault,
  );
  checkNames("operation type", typeList, fault);
  checkErrors(allow["errors"], fault);
  if (!readBoolean(allow["historical_balance_lookup"], "historical_balance_lookup")) {
    fault("no historical balance lookup: balances of past blocks cannot be checked");
  }
  const exemptions = readOptional(allow["balance_exemptions"], "balance_exemptions", readList);
  if ((exemptions ?? []).length > 0) fault("balance exemptions are listed; none is respected here");
  return {
    statuses: new Map(statusList),
    types: new Set(typeList),
    callMethods: new Set(readTexts(allow["call_methods"], "call_methods")),
    blockHashCase: readOptional(allow["block_hash_case"], "block_hash_case", readString),
    transactionHashCase: readOptional(
      allow["transaction_hash_case"],
      "transaction_hash_case",
      readString,
    ),
    timestampStartIndex:
      readOptional(allow["timestamp_start_index"], "timestamp_start_index", readCount) ?? 1,
  };
}

function checkErrors(value: unknown, fault: (message: string) => void): void {
  const errors = readList(value, "errors").map((entry) => readObject(entry, "error"));
  const codes = errors.map((error) => String(readCount(error["code"], "error code")));
  checkNames("error code", codes, fault);
  checkNames(
    "error message",
    errors.map((error) => readString(error["message"], "message")),
    fault,
  );
  if (errors.some((error) => error["details"] !== undefined)) fault("a listed error has details");
}

function checkNames(
  what: string,
  names: readonly string[],
  fault: (message: string) => void,
): void {
  if (names.includes("")) fault(`an ${what} is empty`);
  if (new Set(names).size < names.length) fault(`an ${what} is listed twice`);
}

function readTexts(value: unknown, name: string): string[] {
  return readList(value, name).map((entry) => readString(entry, name));
}
