/** What the words of PostgreSQL's programs mean to a person. */
import { describe, expect, it } from "@jest/globals";
import { folderErrorFromOutput } from "../../../../cli/postgres/errors.js";

describe("a full disk", () => {
  // Words of PostgreSQL 18 on a full tmpfs; a write that fits in part has no errno to tell (md.c, xlog.c).
  it.each([
    'FATAL:  could not write to file "pg_wal/xlogtemp.31": No space left on device',
    'FATAL:  could not extend file "base/1/2704": wrote only 4096 of 8192 bytes at block 1\nHINT:  Check free disk space.',
  ])("is named where the server says: %s", (output) => {
    expect(folderErrorFromOutput("/srv/kit/data/postgres", output)).toMatchObject({
      code: "FOLDER_UNUSABLE",
      retriable: true,
      message:
        "the database folder /srv/kit/data/postgres cannot be used: no space left on the device",
    });
  });

  it("is not the folder's where the server's shared memory is full", () => {
    const output =
      'FATAL:  could not resize shared memory segment "/PostgreSQL.31" to 26976 bytes: No space left on device';
    expect(
      folderErrorFromOutput("/srv/kit/data/postgres", `LOG:  starting\n${output}`),
    ).toMatchObject({
      code: "START_FAILED",
      message:
        "the system's shared memory (/dev/shm) cannot be used by PostgreSQL: no space left on the device",
    });
  });

  it("is not seen in what says something else", () => {
    const output =
      'FATAL:  could not read blocks 1..1 in file "base/1/2704": read only 0 of 8192 bytes';
    expect(folderErrorFromOutput("/srv/kit/data/postgres", output)).toBeUndefined();
  });
});
