/** In the place of the widget's script, which makes `<parley-chat>` what it is. */
export {}
