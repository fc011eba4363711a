import { describe, expect, it } from "@jest/globals";
import {
  databaseUrl,
  redisUrl,
  serviceUrlFaults,
} from "../../../../runtime/config/service-urls.js";

/** Variables at fault, with what is allowed. */
function faultsOf(env: Readonly<Record<string, string>>): readonly string[] {
  return serviceUrlFaults(env).map(({ key, value, allowed }) => `${key} ${value} ${allowed}`);
}

describe("service URLs", () => {
  it.each([
    "postgres://u:s3cr%25t%23@h:5432/d?sslmode=require",
    "postgresql://h",
    "postgres:///d?host=/run/pg",
    "postgres://u@/d?host=/run/pg",
    "postgres://u:p@/d?host=/run/pg",
    "postgres://u@%2Frun%2Fpg/d",
  ])("take %s for the database", (url) => {
    expect(faultsOf({ DATABASE_URL: url, REDIS_URL: "rediss://u:p%25@h:6379" })).toEqual([]);
  });

  it.each([
    ["a percent sign that stands for itself", "postgres://u:s3cr%t@h/d", "redis://:s3cr%t@h"],
    ["the same with a socket", "postgres://u:s3cr%t@/d?host=/run/pg", "redis://:100%@h"],
    ["a delimiter that stands for itself", "postgres://u:p#x@h/d", "redis://:p/x@h"],
    ["no slashes", "postgres:5432", "redis:6379"],
    ["no scheme", "ledger-db", "127.0.0.1:6379"],
    ["another scheme", "mysql://h/d", "http://h"],
    ["no host where there has to be one", "postgres://u@:5432/d", "redis://:p@/0"],
  ])("refuse %s, and show nothing of it", (_what, DATABASE_URL, REDIS_URL) => {
    const encoded = 'user and password percent-encoded ("%" as %25, "#" as %23, "/" as %2F)';
    expect(faultsOf({ DATABASE_URL, REDIS_URL })).toEqual([
      `DATABASE_URL *** a URL starting with postgres:// or postgresql://, ${encoded}`,
      `REDIS_URL *** a URL starting with redis:// or rediss://, ${encoded}`,
    ]);
  });

  it("that are wrong reach no client, and stand in nobody's way who does not use them", () => {
    const options = { home: "/nowhere", portOffset: 0 };
    const wrong = { DATABASE_URL: "ledger-db", REDIS_URL: "redis:6379" };
    const withFile = { ...wrong, REDIS_PASSWORD_FILE: "/nowhere/redis.password" };
    const fault = (name: string) => ({
      code: "INVALID_CONFIG",
      message: expect.stringMatching(`^[^=]*environment: ${name} = [^=]*$`),
    });
    expect(() => databaseUrl({ ...options, env: wrong })).toThrow(
      expect.objectContaining(fault("DATABASE_URL")),
    );
    for (const env of [wrong, withFile]) {
      expect(() => redisUrl(env)).toThrow(expect.objectContaining(fault("REDIS_URL")));
    }
    const right = { DATABASE_URL: "postgres://h/d", REDIS_URL: "redis://h" };
    const env = { ...wrong, DATABASE_URL: right.DATABASE_URL };
    expect(databaseUrl({ ...options, env })).toBe("postgres://h/d");
    expect(redisUrl({ ...wrong, REDIS_URL: right.REDIS_URL })).toBe("redis://h");
  });
});
