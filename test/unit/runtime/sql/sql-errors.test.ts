/** Faults of PostgreSQL by their SQLSTATE (its manual, appendix A): which pass, and which are ours. */
import { describe, expect, it } from "@jest/globals";
import { SqlError, toPoolFault, toSqlError } from "../../../../runtime/sql/sql-errors.js";

const meaningOf = (code: string) => {
  const error = toSqlError(Object.assign(new Error("as the server says"), { code }));
  return error instanceof SqlError ? [error.code, error.retriable] : [];
};

describe("a fault of the server", () => {
  it.each([
    ["53200", "out of memory"],
    ["53300", "too many connections"],
    ["53400", "a configured limit"],
    ["57P01", "it is stopped"],
    ["57P05", "an idle session"],
    ["58000", "the system"],
    ["58030", "input or output"],
    ["58P01", "a file is gone"],
    ["XX000", "internal"],
    ["XX001", "damaged data"],
    ["XX002", "a damaged index"],
    ["25P04", "a transaction took too long"],
    ["40003", "nobody knows whether it was done"],
    ["08006", "the connection"],
  ])("%s (%s) is waited out", (state) => {
    expect(meaningOf(state)).toEqual(["DATABASE_UNAVAILABLE", true]);
  });

  it.each(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL", "ENETDOWN"])(
    "that this machine could not even be asked for (%s) is waited out",
    (code) => {
      expect(meaningOf(code)).toEqual(["DATABASE_UNAVAILABLE", true]);
    },
  );

  it.each([
    ["53100", "DATABASE_FULL", true],
    ["40001", "CONFLICT", true],
    ["40P01", "CONFLICT", true],
    ["23505", "UNIQUE_VIOLATION", false],
    ["23001", "DATABASE_FAULT", false],
    ["22021", "DATABASE_FAULT", false],
    ["42601", "DATABASE_FAULT", false],
    ["57000", "DATABASE_FAULT", false],
  ])("%s is %s, retriable: %s", (state, code, isRetriable) => {
    expect(meaningOf(state)).toEqual([code, isRetriable]);
  });
});

describe("a server that refuses the login", () => {
  const refused = (code: string) =>
    Object.assign(new Error('password authentication failed for user "w"'), { code });

  it.each(["28P01", "28000", "3D000"])("%s ends a start, and a pool waits it out", (code) => {
    expect(toSqlError(refused(code))).toMatchObject({ code: "DATABASE_FAULT", retriable: false });
    for (const fault of [refused(code), toSqlError(refused(code))]) {
      expect(toPoolFault(fault)).toMatchObject({
        code: "DATABASE_UNAVAILABLE",
        retriable: true,
        message: 'DATABASE_UNAVAILABLE: password authentication failed for user "w"',
        details: { sqlState: code },
      });
    }
  });

  it("is told from what a statement has met", () => {
    expect(toPoolFault(refused("42501"))).toMatchObject({ code: "DATABASE_FAULT" });
    expect(toPoolFault(refused("23505"))).toMatchObject({ code: "UNIQUE_VIOLATION" });
  });
});
