import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  readApiKeyFile,
  readPassphraseFile,
  readSecretFile,
  writeNewSecretFile,
} from "../../../../runtime/config/secret-file.js";
import { Client } from "pg";
import {
  databaseUrl,
  postgresPasswordPath,
  redisUrl,
} from "../../../../runtime/config/service-urls.js";

describe("secret files", () => {
  let folder: string;
  const path = () => join(folder, "api.key");

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "causeway-secret-"));
  });

  afterEach(() => {
    chmodSync(folder, 0o700);
    rmSync(folder, { recursive: true });
  });

  it("are written once with mode 600 and never replaced", () => {
    expect(writeNewSecretFile(path(), "first")).toBe(true);
    expect(writeNewSecretFile(path(), "second")).toBe(false);
    expect(readSecretFile(path())).toBe("first");
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["api.key"]);
  });

  it("name the file, never the content, when they cannot be used", () => {
    expect(() => readSecretFile(path())).toThrow(/api\.key \(ENOENT\)/);
    writeFileSync(path(), " \n");
    expect(() => readSecretFile(path())).toThrow(/api\.key holds no usable value/);
    expect(() => writeNewSecretFile(join(folder, "missing", "x"), "S3CRET")).toThrow(
      expect.objectContaining({
        code: "SECRET_FILE_UNWRITABLE",
        message: expect.not.stringContaining("S3CRET"),
      }),
    );
  });

  it("hold a passphrase with its blanks, and line ends around it", () => {
    for (const content of [" of two words ", " of two words \n", "\r\n of two words \r\n\n"]) {
      writeFileSync(path(), content);
      expect(readPassphraseFile(path())).toBe(" of two words ");
    }
    for (const content of ["", "\n", " \n"]) {
      writeFileSync(path(), content);
      expect(() => readPassphraseFile(path())).toThrow(/api\.key holds no usable value/);
    }
  });

  it("hold an API key only if a header can carry it", () => {
    writeFileSync(path(), "k3y-of_a.home\r\n");
    expect(readApiKeyFile(path())).toBe("k3y-of_a.home");
    for (const wrong of [
      "two words",
      "key\nits-secret",
      "tab\tin",
      "k\u00a0y",
      "schl\u00fcssel",
      "k\u0000y",
    ]) {
      writeFileSync(path(), `${wrong}\n`);
      expect(() => readApiKeyFile(path())).toThrow(
        expect.objectContaining({
          code: "SECRET_FILE_UNREADABLE",
          message: expect.stringMatching(/api\.key holds no API key: .* one line/),
        }),
      );
      expect(() => readApiKeyFile(path())).not.toThrow(wrong);
    }
  });
});

describe("service URLs", () => {
  it("come from the environment, else from the embedded server's password and port", () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-urls-"));
    const given = { DATABASE_URL: "postgres://u@h/d", REDIS_URL: "redis://h" };
    expect(databaseUrl({ home, env: given, portOffset: 0 })).toBe("postgres://u@h/d");
    expect(redisUrl(given)).toBe("redis://h");
    expect(redisUrl({ REDIS_URL: "" })).toBeUndefined();
    const passwordFile = join(home, "redis.password");
    writeFileSync(passwordFile, "p@ss/word\n");
    const withFile = { REDIS_URL: "redis://h:6379", REDIS_PASSWORD_FILE: passwordFile };
    expect(redisUrl(withFile)).toBe("redis://:p%40ss%2Fword@h:6379");
    expect(() => databaseUrl({ home, env: {}, portOffset: 0 })).toThrow(/postgres\.password/);
    rmSync(home, { recursive: true });
  });

  it("of the embedded server are followed whatever the shell says of other servers", () => {
    const home = mkdtempSync(join(tmpdir(), "causeway-urls-"));
    mkdirSync(join(home, "config"));
    writeFileSync(postgresPasswordPath(home), "secret");
    const former = { ...process.env };
    Object.assign(process.env, {
      PGSSLMODE: "prefer",
      PGSSLNEGOTIATION: "direct",
      PGOPTIONS: "-c default_transaction_read_only=on",
    });
    try {
      const client = new Client(databaseUrl({ home, env: {}, portOffset: 1 }));
      expect(client).toMatchObject({
        host: "127.0.0.1",
        port: 15_433,
        database: "causeway",
        password: "secret",
        ssl: false,
        connectionParameters: { options: "-c DateStyle=ISO" },
      });
    } finally {
      process.env = former;
    }
    rmSync(home, { recursive: true });
  });
});
