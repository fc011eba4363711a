/** The rules of mesh-sdk-go's asserter that a schema cannot express, as expectations. */
import { expect } from "@jest/globals";
import type { Reply, ReplyAllow, ReplyBlock, ReplyOperation } from "./replies.js";

const INTEGER = /^-?[0-9]+$/;
const EARLIEST_MS = 946_713_600_000;
const LATEST_MS = 2_209_017_600_000;

function assertAmount(amount: NonNullable<ReplyOperation["amount"]>): void {
  expect(amount.value).toMatch(INTEGER);
  expect(amount.currency.symbol).not.toBe("");
  expect(amount.currency.decimals).toBeGreaterThanOrEqual(0);
}

/** Operations of a block (`construction` false) or of an intent. */
export function assertOperations(
  operations: readonly ReplyOperation[],
  options: { readonly allow: ReplyAllow; readonly construction: boolean },
): void {
  operations.forEach((operation, position) => {
    expect(operation.operation_identifier.index).toBe(position);
    const related = (operation.related_operations ?? []).map((entry) => entry.index);
    expect(new Set(related).size).toBe(related.length);
    for (const index of related) expect(index).toBeLessThan(position);
    expect(options.allow.operation_types).toContain(operation.type);
    const statuses = options.allow.operation_statuses.map((entry) => entry.status);
    if (options.construction) expect(operation.status ?? "").toBe("");
    else expect(statuses).toContain(operation.status);
    if (operation.amount !== undefined) {
      assertAmount(operation.amount);
      expect(operation.account.address).not.toBe("");
    }
  });
}

/** A block, its links and all its transactions. */
export function assertBlock(block: ReplyBlock, allow: ReplyAllow): void {
  const { block_identifier: self, parent_block_identifier: parent } = block;
  expect(self.hash).not.toBe("");
  if (self.index === 0) {
    expect(parent).toEqual(self);
  } else {
    expect(parent.index).toBe(self.index - 1);
    expect(parent.hash).not.toBe(self.hash);
  }
  if (self.index >= (allow.timestamp_start_index ?? 1)) {
    expect(block.timestamp).toBeGreaterThanOrEqual(EARLIEST_MS);
    expect(block.timestamp).toBeLessThanOrEqual(LATEST_MS);
  }
  const hashes = block.transactions.map((entry) => entry.transaction_identifier.hash);
  expect(new Set(hashes).size).toBe(hashes.length);
  for (const transaction of block.transactions) {
    expect(transaction.transaction_identifier.hash).toBe(
      transaction.transaction_identifier.hash.toLowerCase(),
    );
    assertOperations(transaction.operations, { allow, construction: false });
  }
}

/** /network/options: at least one successful status, everything named once. */
export function assertOptions(options: Pick<Reply, "allow" | "version">): void {
  const { allow } = options;
  expect(allow.operation_statuses.some((entry) => entry.successful)).toBe(true);
  const lists: readonly (readonly (string | number)[])[] = [
    allow.operation_statuses.map((entry) => entry.status),
    allow.operation_types,
    allow.errors.map((entry) => entry.code),
    allow.errors.map((entry) => entry.message),
    allow.call_methods,
  ];
  for (const values of lists) {
    expect(new Set(values).size).toBe(values.length);
    expect(values).not.toContain("");
  }
  for (const error of allow.errors) {
    expect(error.code).toBeGreaterThanOrEqual(0);
    expect(error).not.toHaveProperty("details");
  }
  expect(options.version.rosetta_version).not.toBe("");
  expect(options.version.node_version).not.toBe("");
}
