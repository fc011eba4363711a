/** Dump and restore of a database under compose, by the lines that the page has for it. */
import { describe, expect, it } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { compose, operations, root } from "./compose-file.js";

describe("the runbook of a database under compose", () => {
  const page = readFileSync(join(root, "docs/restore.md"), "utf8");
  const blocks = [...page.matchAll(/^```sh\n([^]*?)^```$/gm)].map(([, block = ""]) => block);

  /** The block that has these words in it. */
  function blockWith(words: string): string {
    const found = blocks.filter((block) => block.includes(words));
    expect([words, found.length]).toEqual([words, 1]);
    return found[0] ?? "";
  }

  /**
   * Runs a block by a shell, where both programs are these lines of a shell.
   * @returns what the programs were called with, and the files of the folder afterwards
   */
  function run(block: string, { program, dump }: { program: string; dump: string }) {
    const folder = mkdtempSync(join(tmpdir(), "causeway-runbook-"));
    writeFileSync(join(folder, "causeway.dump"), dump);
    for (const name of ["docker", "pg_dump"]) {
      const lines = `#!/bin/sh\necho "${name} $*" >> calls\n${program}\n`;
      writeFileSync(join(folder, name), lines, { mode: 0o755 });
    }
    const env = { PATH: `${folder}:/usr/bin:/bin` };
    const { status } = spawnSync("sh", ["-c", block], { cwd: folder, env });
    const read = (name: string) => {
      const file = join(folder, name);
      return existsSync(file) ? readFileSync(file, "utf8") : "";
    };
    const after = {
      isDone: status === 0,
      dump: read("causeway.dump"),
      override: read("docker-compose.override.yml"),
      calls: read("calls").trimEnd().split("\n"),
    };
    rmSync(folder, { recursive: true });
    return after;
  }

  it("leaves the dump of before where a new one is not whole", () => {
    const dumps = blocks.filter((block) => block.includes("pg_dump"));
    expect(dumps).toHaveLength(2);
    for (const block of dumps) {
      // Into the file that is named, or out of the container.
      const write = (what: string) =>
        `for one in "$@"; do case "$one" in --file=*) exec > "\${one#--file=}";; esac; done\necho ${what}`;
      const cutOff = run(block, { program: `${write("half")}\nexit 1`, dump: "whole" });
      expect([cutOff.isDone, cutOff.dump]).toEqual([false, "whole"]);
      const made = run(block, { program: write("new"), dump: "whole" });
      expect([made.isDone, made.dump]).toEqual([true, "new\n"]);
    }
  });

  it("restores into a volume of its own each time, and goes on behind no line that failed", () => {
    const block = blockWith("docker-compose.override.yml");
    expect(block).not.toContain("pg_dump");
    const { isDone, override, calls } = run(block, { program: "", dump: "whole" });
    expect([isDone, calls.length]).toEqual([true, 4]);
    expect(parse(override)).toEqual({
      volumes: {
        "postgres-data": { name: expect.stringMatching(/^causeway-postgres-2[0-9]{11}$/) },
      },
    });
    expect(compose.volumes).toHaveProperty("postgres-data");
    const failing = run(block, { program: "exit 1", dump: "whole" });
    expect([failing.isDone, failing.override, failing.calls.length]).toEqual([false, "", 1]);
    const stuck = run(block, { program: 'case "$*" in *--wait*) exit 1;; esac', dump: "whole" });
    expect([stuck.isDone, stuck.calls.length]).toEqual([false, 2]);
  });

  it("asks compose for the volume that a start uses, before one is removed", () => {
    for (const told of [page, operations]) {
      expect(told).not.toContain("PROJECT_postgres-data");
      expect(told).toContain("`docker compose config`");
    }
  });
});
