import { PROGRAMS, runAfterChange } from './callers';

/** `npm run callers`: what each caller gets after a change, as rows of a table. */
async function main(): Promise<void> {
  for (const program of Object.values(PROGRAMS)) {
    try {
      const { after, tokenRequests } = await runAfterChange(program);
      const accepted = after.filter((status) => status === 200).length;
      console.log(`| ${program.language} | ${program.library} | ${after.length} | ${tokenRequests} | ${accepted} |`);
    } catch (error) {
      console.log(`${program.library} is skipped: ${(error as Error).message}`);
    }
  }
}

void main();
