/** The build replaces the handbook's contents by its chapters. */
declare module "*/README.md" {
  const chapters: readonly import("./handbook/chapter.ts").Chapter[];
  export default chapters;
}
