ALTER TABLE `turns` ADD `parts` text;
