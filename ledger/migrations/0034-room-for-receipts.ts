/**
 * Room in the pages of nonce slots for what is known of each once it is mined: a receipt takes as much as the
 * slot itself. Where the new version of a row stays in its page no index is written; there are six.
 */
import type { MigrationInterface, QueryRunner } from "typeorm";

/** A slot takes some 170 bytes of a page, and 310 beside these with its receipt. */
const ROOM = `ALTER TABLE nonce_slot SET (fillfactor = 30)`;

/** How new pages are filled. */
export class RoomForReceipts1760000000034 implements MigrationInterface {
  readonly name = "RoomForReceipts1760000000034";

  /** No row is read or written: pages that are there stay as they are. */
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(ROOM);
  }

  /** As migration 18 had it. */
  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE nonce_slot SET (fillfactor = 70)`);
  }
}
