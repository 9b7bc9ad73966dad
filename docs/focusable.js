// What scrolls sideways can be reached with the keyboard. The theme wraps tables after a page has loaded.
document$.subscribe(() =>
  setTimeout(() => {
    for (const region of document.querySelectorAll(".md-typeset__scrollwrap, pre > code")) region.tabIndex = 0;
  }),
);

// The theme stores the colours of the first visit. Forget them, so that each visit follows the system.
addEventListener("pagehide", () => localStorage.removeItem(__md_scope.pathname + ".__palette"))
